import { defineComponent, reactive, shallowRef, type VNode } from 'vue'
import { changeBeat, loadBeat, loadBeats, saveBeat, type Beat, type BeatWish } from '../duty'
import { notice, section } from '../parts/basics'
import { CopyBlock } from '../parts/copy'
import { bind, button, choice, confirm, Dialog, inputField, optionsOf, plain, say, selectField, table, type TableRow } from '../parts/elements'
import { drop, end, SaveDialog, useDialog, viewActions, viewName } from '../parts/listed'
import { describeChat, TargetPicker } from '../parts/target'
import { ago } from '../parts/time'
import { usePolling } from '../poll'
import { about } from '../state'
import { ownZone, texts, wordFor, writeDuration, writeMoment, zones } from '../texts'

/** The marks of states, as of accounts. */
const marks: Partial<Record<string, string>> = { up: 'sent', started: 'sending', down: 'failed', paused: 'unanswered' }

/** Jobs that report when they have run. */
export const BeatsTab = defineComponent({
  setup() {
    const beats = shallowRef<Beat[]>()
    const problem = shallowRef('')
    const { show, close, view } = useDialog()
    const look = usePolling(async () => {
      const found = await loadBeats()
      problem.value = 'problem' in found ? texts.value.common.failed(found.problem) : ''
      if ('value' in found) beats.value = found.value
    })
    const showPing = async (name: string): Promise<void> => {
      const [found] = await Promise.all([loadBeat(name), look()])
      if ('value' in found) show(() => <Dialog title={name} onClose={close}>{() => viewPing(found.value)}</Dialog>)
      else say('bad', texts.value.common.failed(found.problem))
    }
    const edit = (of?: Beat): void => {
      const { name = '', every = '', cron = '', zone = '', grace = '1h', to = [], severity = 'warning' } = of ?? {}
      const wish = reactive<BeatWish>({
        name, every: every || '1d', cron, zone: zone || ownZone(), grace, to, severity, mode: cron ? 'cron' : 'every',
      })
      const title = of ? undefined : texts.value.beats.make
      show(() => (
        <SaveDialog name={wish.name} title={title} save={() => saveBeat(wish)} onClose={close} onSaved={showPing}>
          {(problem?: string) => viewForm(wish, of === undefined, problem)}
        </SaveDialog>
      ))
    }
    const change = async ({ name }: Beat, action: 'pause' | 'resume'): Promise<void> => {
      await end(await changeBeat(name, action), texts.value.beats.done[action](name))
      await look()
    }
    const rotate = async ({ name }: Beat): Promise<void> => {
      const t = texts.value.beats
      if (!await confirm({ title: t.rotateTitle(name), text: t.rotateText, verb: t.rotate })) return
      await end(await changeBeat(name, 'rotate'), t.rotated(name))
      await showPing(name)
    }
    const rowOf = (beat: Beat): TableRow => {
      const { beats: t, keys, targets, common } = texts.value
      const { name, state, last, next, duration, every, cron, zone, grace, to } = beat
      return {
        key: `${beat.origin} ${name}`,
        cells: [
          viewName(beat, beats.value ?? []),
          <span class={['relay-state', marks[state]]}>{wordFor(t.states, state)}</span>,
          last ? ago(last) : keys.never,
          <span>
            {next ? writeMoment(next) : '–'}
            <span class="relay-hint">{common.list([cron ? common.named(cron, zone) : t.each(every), t.within(grace)])}</span>
          </span>,
          duration === undefined ? '–' : writeDuration(duration),
          common.list(to.map(describeChat)),
          viewActions(beat, [[targets.change, () => edit(beat)], [targets.remove, () => drop('beats', name)]], [
            [t.address, () => showPing(name)],
            state === 'paused' ? [t.resume, () => change(beat, 'resume')] : [t.pause, () => change(beat, 'pause')],
            [t.rotate, () => rotate(beat)],
          ]),
        ],
      }
    }
    return () => {
      const { beats: t, keys, common } = texts.value
      if (!beats.value) return <p role="status">{problem.value || common.loading}</p>
      const heads = [keys.name, t.state, t.last, t.next, t.duration, t.target, keys.actions]
      return (
        <div>
          {problem.value && notice('bad', problem.value)}
          {section(t.list, (
            <div>
              <p class="relay-hint">{t.hint}</p>
              {beats.value.length > 0 && table(t.list, heads, beats.value.map(rowOf))}
            </div>
          ), button(t.make, () => edit(), { kind: 'primary' }))}
          {view()}
        </div>
      )
    }
  },
})

/** The address of the pings of a beat, and lines that call it. */
function viewPing({ ping, cron }: Beat): VNode {
  const t = texts.value.beats
  const url = `${about.value?.url ?? ''}${ping}`
  const lines = [
    [t.pingAddress, url],
    [t.cronLine, `${cron && `${cron} `}backup.sh && curl -fsS -m 10 --retry 5 -o /dev/null ${url}`],
    [t.runLine, `relay run --ping ${url} -- backup.sh`],
  ] as const
  return (
    <div>
      {lines.map(([label, text]) => [<h3>{label}</h3>, <CopyBlock text={text} name={label} />])}
      <p class="relay-hint">{t.pingHint}</p>
    </div>
  )
}

/** @param problem of the name */
function viewForm(wish: BeatWish, isNew: boolean, problem?: string): VNode {
  const { beats: t, keys, targets, send, incidents } = texts.value
  return (
    <div>
      {isNew && inputField(keys.name, bind(wish, 'name'), { hint: t.nameHint, problem })}
      <div class="relay-field">{choice(t.mode, bind(wish, 'mode'), [['every', t.modes.every], ['cron', t.modes.cron]])}</div>
      {wish.mode === 'every' && inputField(t.every, bind(wish, 'every'), { hint: t.spanHint })}
      {wish.mode === 'cron' && (
        <div class="relay-pair">
          {inputField(t.cron, bind(wish, 'cron'), { hint: t.cronHint, placeholder: '30 2 * * *' })}
          {selectField(targets.zone, bind(wish, 'zone'), zones(wish.zone).map(plain), { searched: true })}
        </div>
      )}
      {inputField(t.grace, bind(wish, 'grace'), { hint: t.graceHint })}
      <TargetPicker {...bind(wish, 'to')} label={t.target} hint={send.targetHint} multiple />
      {selectField(t.severity, bind(wish, 'severity'), optionsOf(incidents.severities))}
    </div>
  )
}
