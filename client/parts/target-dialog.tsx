import { defineComponent, reactive, shallowRef, type PropType } from 'vue'
import { saveTarget, wordOf, type Target, type Way } from '../admin'
import { refreshInventory, targets } from '../inventory'
import { bots, splitAddress } from '../contacts'
import { languageNames, texts } from '../texts'
import { notice } from './basics'
import { button, Dialog, Field, input, say, select, type Labelled } from './elements'
import { TargetPicker } from './target'

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
    const { name = '', to = props.chats, lang = '' } = props.of ?? {}
    const parts = to.map(splitAddress)
    /** The bot of all of its addresses. */
    const bot = parts.every(part => part.bot === parts[0]?.bot) ? parts[0]?.bot ?? '' : ''
    const { first = [], after = '', whenUnknown = '', digest = '', quiet = { from: '', to: '', zone: '' } } = props.of ?? {}
    const wish = reactive({
      name, to: bot === '' ? [...to] : parts.map(({ chat }) => chat), lang, bot, digest, quiet: { ...quiet }, after, whenUnknown,
      isLadder: first.length > 0, ways: first.map(wordOf).join('\n'),
    })
    /** What was there already keeps its secret and its format. */
    const ways = (): Way[] => wish.ways.split('\n').map(line => line.trim()).filter(Boolean)
      .map(word => first.find(way => typeof way === 'object' && way.url === word) ?? word)
    const isEmpty = (): boolean => wish.isLadder ? ways().length === 0 : wish.to.length === 0
    const problem = shallowRef('')
    const isBusy = shallowRef(false)
    const isAsked = shallowRef(false)
    const lacks = (): { name?: string, to?: string } => {
      const t = texts.value.targets
      const word = wish.name.trim()
      const isTaken = !props.of && targets.value?.some(each => each.name === word)
      return { ...word === '' ? { name: t.needName } : isTaken && { name: t.taken }, ...isEmpty() && { to: t.needTo } }
    }
    const save = async (): Promise<void> => {
      isAsked.value = true
      if (isBusy.value || Object.keys(lacks()).length > 0) return
      isBusy.value = true
      const word = wish.name.trim()
      const result = await saveTarget({ ...wish, name: word, first: wish.isLadder ? ways() : [] }, wish.bot)
      isBusy.value = false
      problem.value = 'problem' in result ? texts.value.common.failed(result.problem) : ''
      if ('problem' in result) return
      await refreshInventory()
      say('good', texts.value.targets.saved(word))
      emit('saved', word)
      emit('close')
    }
    const viewLadder = (problem: string | undefined) => {
      const t = texts.value.targets
      return [
        <Field label={t.ways} hint={t.waysHint} problem={problem}>
          {(labelled: Labelled) => input(wish.ways, value => {
            wish.ways = value
          }, { ...labelled, type: 'textarea', mono: true, rows: 4, invalid: problem !== undefined })}
        </Field>,
        <Field label={t.after} hint={t.afterHint}>
          {(labelled: Labelled) => input(wish.after, value => {
            wish.after = value
          }, labelled)}
        </Field>,
        <Field label={t.whenUnknown} hint={t.whenUnknownHint}>
          {(labelled: Labelled) => select(wish.whenUnknown || 'stop', [{ value: 'stop', label: t.stop }, { value: 'next', label: t.next }], value => {
            wish.whenUnknown = value
          }, labelled)}
        </Field>,
      ]
    }
    const viewQuiet = () => {
      const t = texts.value.targets
      const fields = [['from', t.quietFrom, '22:00'], ['to', t.quietTo, '08:00'], ['zone', t.quietZone, t.ownZone]] as const
      return fields.map(([field, label, placeholder]) => (
        <Field key={field} label={label} hint={field === 'from' ? t.quietHint : undefined}>
          {(labelled: Labelled) => input(wish.quiet[field], value => {
            wish.quiet[field] = value
          }, { ...labelled, placeholder })}
        </Field>
      ))
    }
    const viewForm = () => {
      const t = texts.value.targets
      const wrong = isAsked.value ? lacks() : {}
      const languages = Object.entries(languageNames).map(([value, label]) => ({ value, label }))
      const known = bots.value.map(value => ({ value, label: value }))
      return (
        <form
          onSubmit={(event: Event) => {
            event.preventDefault()
            void save()
          }}
        >
          {!props.of && (
            <Field label={t.name} hint={t.nameHint} problem={wrong.name}>
              {(labelled: Labelled) => input(wish.name, value => {
                wish.name = value
              }, { ...labelled, invalid: wrong.name !== undefined })}
            </Field>
          )}
          <Field label={t.sendTo}>
            {(labelled: Labelled) => select(wish.isLadder ? 'first' : 'all', [{ value: 'all', label: t.all }, { value: 'first', label: t.first }], value => {
              wish.isLadder = value === 'first'
            }, labelled)}
          </Field>
          {wish.isLadder
            ? viewLadder(wrong.to)
            : (
                <TargetPicker
                  modelValue={wish.to}
                  label={t.to}
                  hint={t.toHint}
                  problem={wrong.to}
                  bot={wish.bot}
                  multiple
                  chatsOnly
                  onUpdate:modelValue={(value: string[]) => {
                    wish.to = value
                  }}
                />
              )}
          <Field label={t.digest} hint={t.digestHint}>
            {(labelled: Labelled) => input(wish.digest, value => {
              wish.digest = value
            }, labelled)}
          </Field>
          {viewQuiet()}
          <Field label={t.lang} hint={t.langHint}>
            {(labelled: Labelled) => select(wish.lang, [{ value: '', label: t.defaultLang }, ...languages], value => {
              wish.lang = value
            }, labelled)}
          </Field>
          {!wish.isLadder && (
            <Field label={t.bot} hint={t.botHint}>
              {(labelled: Labelled) => select(wish.bot, [{ value: '', label: t.anyBot }, ...known], value => {
                wish.bot = value
              }, labelled)}
            </Field>
          )}
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
