import { defineComponent, reactive, shallowRef, type PropType, type VNode } from 'vue'
import { saveTarget, type Target } from '../admin'
import { refreshInventory, targets } from '../inventory'
import { bots, splitAddress } from '../contacts'
import { languageNames, texts } from '../texts'
import { notice } from './basics'
import { button, checkbox, choice, Dialog, Field, input, say, select, type InputOptions, type Labelled } from './elements'
import { TargetPicker } from './target'
import { formWay, WaysEditor, type FormWay } from './ways'

/** What the form of a target holds. */
interface Wish {
  name: string
  mode: 'all' | 'first'
  to: string[]
  ways: FormWay[]
  after: string
  goesOnUnknown: boolean
  digest: string
  from: string
  until: string
  zone: string
  lang: string
  bot: string
}

/** Makes a target, or changes one. */
export const TargetDialog = defineComponent({
  props: {
    /** Absent for a new one. */
    of: { type: Object as PropType<Target> },
    /** What a new one begins with. */
    chats: { type: Array as PropType<readonly string[]>, default: () => [] },
  },
  emits: { close: () => true, saved: (name: string) => name !== '' },
  setup(props, { emit }) {
    const wish = reactive(wishOf(props.of, props.chats))
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    const isAsked = shallowRef(false)
    /** Whether there is more than most targets have. */
    const hasRules = wish.digest !== '' || wish.from !== ''
    const lacks = (): Problems => problemsOf(wish, props.of === undefined)
    const save = async (): Promise<void> => {
      isAsked.value = true
      if (isBusy.value || Object.keys(lacks()).length > 0) return
      isBusy.value = true
      const { mode, to, ways, from, until, zone } = wish
      const name = wish.name.trim()
      const quiet = from === '' ? undefined : { from, to: until, zone }
      const result = await saveTarget({ ...wish, name, quiet, ...mode === 'all' ? { to, first: [] } : { to: [], first: ways } }, wish.bot)
      isBusy.value = false
      problem.value = 'problem' in result ? texts.value.common.failed(result.problem) : ''
      if ('problem' in result) return
      await refreshInventory()
      say('good', texts.value.targets.saved(name))
      emit('saved', name)
      emit('close')
    }
    const view = (name: 'name' | 'after' | 'digest' | 'from' | 'until', label: string, hint?: string, type: InputOptions['type'] = 'text'): VNode => {
      const wrong = isAsked.value ? lacks()[name] : undefined
      return (
        <Field label={label} hint={hint} problem={wrong}>
          {(labelled: Labelled) => input(wish[name], value => {
            wish[name] = value
          }, { ...labelled, type, invalid: wrong !== undefined })}
        </Field>
      )
    }
    const pick = (name: 'lang' | 'bot' | 'zone', label: string, options: readonly (readonly [value: string, label: string])[], hint?: string): VNode => (
      <Field label={label} hint={hint}>
        {(labelled: Labelled) => select(wish[name], options.map(([value, label]) => ({ value, label })), value => {
          wish[name] = value
        }, { ...labelled, searched: name === 'zone' })}
      </Field>
    )
    const viewAll = (): VNode => {
      const t = texts.value.targets
      return (
        <div>
          <TargetPicker
            modelValue={wish.to}
            label={t.to}
            hint={t.toHint}
            problem={isAsked.value ? lacks().to : undefined}
            bot={wish.bot}
            multiple
            chatsOnly
            onUpdate:modelValue={(value: string[]) => {
              wish.to = value
            }}
          />
          {pick('bot', t.bot, [['', t.anyBot], ...bots.value.map(bot => [bot, bot] as const)], t.botHint)}
        </div>
      )
    }
    const viewFirst = (): VNode => {
      const t = texts.value.targets
      return (
        <div>
          <WaysEditor
            modelValue={wish.ways}
            isAsked={isAsked.value}
            onUpdate:modelValue={(value: FormWay[]) => {
              wish.ways = value
            }}
          />
          {view('after', t.after, t.afterHint)}
          <div class="relay-field">
            {checkbox(t.goesOn, wish.goesOnUnknown, isOn => {
              wish.goesOnUnknown = isOn
            })}
          </div>
        </div>
      )
    }
    const viewForm = (): VNode => {
      const t = texts.value.targets
      const modes = [['all', t.modes.all], ['first', t.modes.first]] as const
      return (
        <form
          onSubmit={(event: Event) => {
            event.preventDefault()
            void save()
          }}
        >
          {!props.of && view('name', t.name, t.nameHint)}
          <div class="relay-field">
            {choice(t.mode, wish.mode, modes, mode => {
              wish.mode = mode
            })}
          </div>
          {wish.mode === 'all' ? viewAll() : viewFirst()}
          {pick('lang', t.lang, [['', t.defaultLang], ...Object.entries(languageNames)], t.langHint)}
          <details open={hasRules}>
            <summary>{t.rules}</summary>
            {view('digest', t.digest, t.digestHint)}
            <div class="relay-pair">
              {view('from', t.quietFrom, t.quietHint, 'time')}
              {view('until', t.quietTo, undefined, 'time')}
            </div>
            {pick('zone', t.zone, [...new Set([...Intl.supportedValuesOf('timeZone'), wish.zone])].map(zone => [zone, zone]))}
          </details>
          {problem.value && notice('bad', problem.value)}
          <div class="relay-row end">
            {button(texts.value.common.cancel, () => emit('close'))}
            {button(t.save, undefined, { kind: 'primary', submits: true, busy: isBusy.value })}
          </div>
        </form>
      )
    }
    return () => {
      const t = texts.value.targets
      return <Dialog title={props.of ? t.changeTitle(props.of.name) : t.makeTitle} stays onClose={() => emit('close')}>{viewForm}</Dialog>
    }
  },
})

/** @param chats what a new target begins with */
function wishOf(target: Target | undefined, chats: readonly string[]): Wish {
  const { name = '', to = chats, first = [], after = '', goesOnUnknown = false, digest = '', quiet, lang = '' } = target ?? {}
  const parts = to.map(splitAddress)
  /** The bot of all of its addresses. */
  const bot = parts.every(part => part.bot === parts[0]?.bot) ? parts[0]?.bot ?? '' : ''
  const ways = first.length > 0 ? first : [{}, {}]
  return {
    name, lang, bot, after, goesOnUnknown, digest, mode: first.length > 0 ? 'first' : 'all', ways: ways.map(formWay),
    to: bot === '' ? [...to] : parts.map(({ chat }) => chat),
    from: quiet?.from ?? '', until: quiet?.to ?? '', zone: quiet?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
}

/** What is wrong with the fields of the form. The relay judges the rest. */
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
