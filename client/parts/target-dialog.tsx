import { defineComponent, reactive, shallowRef, type PropType, type VNode } from 'vue'
import { readMentions, saveTarget, type Target } from '../admin'
import { refreshInventory, targets } from '../inventory'
import { bots, splitAddress } from '../contacts'
import { languageNames, ownZone, texts, zones } from '../texts'
import { bind, checkbox, choice, FormDialog, inputField, optionsOf, plain, say, selectField, type InputOptions } from './elements'
import { AckEditor, MentionEditor } from './ack'
import { TargetPicker } from './target'
import { useTask } from './task'
import { formWay, WaysEditor } from './ways'

/** Creates or changes a target. */
export const TargetDialog = defineComponent({
  props: {
    /** Absent for a new target. */
    of: { type: Object as PropType<Target> },
    /** The initial chats of a new target. */
    chats: { type: Array as PropType<readonly string[]>, default: () => [] },
  },
  emits: { close: () => true, saved: (name: string) => name !== '' },
  setup(props, { emit }) {
    const wish = reactive(wishOf(props.of, props.chats))
    const task = useTask()
    const isAsked = shallowRef(false)
    /** Whether the target has rules that most targets lack. */
    const hasRules = wish.digest !== '' || wish.from !== ''
    const problems = (): Problems => problemsOf(wish, props.of === undefined)
    const save = async (): Promise<void> => {
      isAsked.value = true
      if (Object.keys(problems()).length > 0) return
      const { mode, to, ways, from, until, zone } = wish
      const name = wish.name.trim()
      const quiet = from === '' ? undefined : { from, to: until, zone }
      const target = { ...wish, name, quiet, ...mode === 'all' ? { to, first: [] } : { to: [], first: ways } }
      if (!await task.run(() => saveTarget(target, wish.bot))) return
      await refreshInventory()
      say('good', texts.value.targets.saved(name))
      emit('saved', name)
      emit('close')
    }
    const view = (name: 'name' | 'after' | 'digest' | 'from' | 'until', label: string, hint?: string, type: InputOptions['type'] = 'text'): VNode => {
      return inputField(label, bind(wish, name), { hint, type, problem: isAsked.value ? problems()[name] : undefined })
    }
    const viewAll = (): VNode => {
      const t = texts.value.targets
      return (
        <div>
          <TargetPicker
            {...bind(wish, 'to')}
            label={t.to}
            hint={t.toHint}
            problem={isAsked.value ? problems().to : undefined}
            bot={wish.bot}
            multiple
            chatsOnly
          />
          {selectField(t.bot, bind(wish, 'bot'), [{ value: '', label: t.anyBot }, ...bots.value.map(plain)], { hint: t.botHint })}
        </div>
      )
    }
    const viewFirst = (): VNode => {
      const t = texts.value.targets
      return (
        <div>
          <WaysEditor {...bind(wish, 'ways')} isAsked={isAsked.value} />
          {view('after', t.after, t.afterHint)}
          <div class="relay-field">{checkbox(t.goesOn, bind(wish, 'goesOnUnknown'))}</div>
        </div>
      )
    }
    const viewForm = (): VNode => {
      const t = texts.value.targets
      const modes = [['all', t.modes.all], ['first', t.modes.first]] as const
      const langs = [{ value: '', label: t.defaultLang }, ...optionsOf(languageNames)]
      return (
        <div>
          {!props.of && view('name', t.name, t.nameHint)}
          <div class="relay-field">{choice(t.mode, bind(wish, 'mode'), modes)}</div>
          {wish.mode === 'all' ? viewAll() : viewFirst()}
          {selectField(t.lang, bind(wish, 'lang'), langs, { hint: t.langHint })}
          <details open={hasRules}>
            <summary>{t.rules}</summary>
            {view('digest', t.digest, t.digestHint)}
            <div class="relay-pair">
              {view('from', t.quietFrom, t.quietHint, 'time')}
              {view('until', t.quietTo, undefined, 'time')}
            </div>
            {selectField(t.zone, bind(wish, 'zone'), zones(wish.zone).map(plain), { searched: true })}
          </details>
          <details open={wish.ack !== undefined || Object.values(wish.mention).flat().length > 0}>
            <summary>{texts.value.ack.title}</summary>
            <MentionEditor {...bind(wish, 'mention')} />
            <AckEditor {...bind(wish, 'ack')} />
          </details>
        </div>
      )
    }
    return () => {
      const t = texts.value.targets
      const title = props.of ? t.changeTitle(props.of.name) : t.makeTitle
      return <FormDialog title={title} verb={t.save} task={task} onSubmit={save} onClose={() => emit('close')}>{viewForm}</FormDialog>
    }
  },
})

/**
 * The initial values of the form of a target.
 *
 * @param chats the initial chats of a new target
 */
function wishOf(target: Target | undefined, chats: readonly string[]) {
  const { name = '', to = chats, first = [], after = '', goesOnUnknown = false, digest = '', quiet, lang = '', mention = readMentions('none'), ack } = target ?? {}
  const parts = to.map(splitAddress)
  /** The bot that all addresses share; empty if they differ. */
  const bot = parts.every(part => part.bot === parts[0]?.bot) ? parts[0]?.bot ?? '' : ''
  const ways = first.length > 0 ? first : [{}, {}]
  return {
    name, lang, bot, after, goesOnUnknown, digest, mention, ack, mode: first.length > 0 ? 'first' as const : 'all' as const, ways: ways.map(formWay),
    to: bot === '' ? [...to] : parts.map(({ chat }) => chat),
    from: quiet?.from ?? '', until: quiet?.to ?? '', zone: quiet?.zone ?? ownZone(),
  }
}

type Wish = ReturnType<typeof wishOf>

/** The problems of the form's fields. The relay checks the rest. */
type Problems = Partial<Record<keyof Wish, string>>

function problemsOf({ name, mode, to, ways, after, digest, from, until }: Wish, isNew: boolean): Problems {
  const t = texts.value.targets
  const word = name.trim()
  const isTaken = isNew && targets.value?.some(each => each.name === word)
  const isWithin = (text: string, least: number, most: number): boolean => text === '' || (Number(text) >= least && Number(text) <= most)
  const isHalf = from === until ? from !== '' : from === '' || until === ''
  return {
    ...word === '' ? { name: t.needName } : isTaken && { name: t.taken },
    ...mode === 'all' && to.length === 0 && { to: t.needTo },
    ...mode === 'first' && ways.some(({ address }) => address === '') && { ways: t.needWay },
    ...mode === 'first' && !isWithin(after, 1, 86_400) && { after: t.badAfter },
    ...!isWithin(digest, 0, 3600) && { digest: t.badDigest },
    ...isHalf && { until: t.badQuiet },
  }
}
