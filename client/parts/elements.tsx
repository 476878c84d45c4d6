/** The console's components that the page uses, with types and with names for screen readers. */
import { message, messageBox } from '@koishijs/client'
import { defineComponent, h, nextTick, resolveComponent, shallowRef, useId, type PropType, type VNode, type VNodeChild } from 'vue'
import { locale, texts } from '../texts'
import { viewProblem, type Task } from './task'

/** Renders a component that the console has registered for all pages. */
function view(name: string, props: Record<string, unknown>, slots: Record<string, (() => VNodeChild) | undefined> = {}): VNode {
  return h(resolveComponent(name), props, Object.fromEntries(Object.entries(slots).filter(([, slot]) => slot !== undefined)))
}

export interface ButtonOptions {
  kind?: 'primary' | 'danger'
  /** `link` has no frame. */
  look?: 'link' | 'small'
  disabled?: boolean
  /** Shows a spinner and ignores clicks. */
  busy?: boolean
  /** The name for screen readers, if it differs from the label. */
  describes?: string | undefined
  /** Whether the button submits its form. */
  submits?: boolean
  /** Whether the section that the button toggles is open. */
  expanded?: boolean
}

export function button(label: VNodeChild, onClick: (() => unknown) | undefined, options: ButtonOptions = {}): VNode {
  const { kind, look, disabled, busy, describes, submits, expanded } = options
  return view('el-button', {
    ...kind && { type: kind },
    'link': look === 'link', 'size': look === 'small' ? 'small' : 'default', 'disabled': disabled === true, 'loading': busy === true,
    'nativeType': submits ? 'submit' : 'button', 'aria-label': describes, 'aria-expanded': expanded, onClick,
  }, { default: () => label })
}

/** Links a control to its label and its hint. */
export interface Labelled {
  id?: string
  describedBy?: string
  /** The text of the label. */
  named?: string
}

/** A cross that closes something. */
export function closeButton(onClick: () => unknown): VNode {
  return view('el-button', { 'text': true, 'circle': true, 'class': 'relay-close', 'aria-label': texts.value.common.close, onClick }, {
    default: () => <span aria-hidden="true">✕</span>,
  })
}

export interface InputOptions extends Labelled {
  type?: 'text' | 'textarea' | 'search' | 'date' | 'datetime-local' | 'time' | 'password'
  placeholder?: string
  /** The name for screen readers, if there is no label. */
  describes?: string
  /** Whether the value is invalid. */
  invalid?: boolean
  /** The height of a textarea. */
  rows?: number
  /** Whether the text is code. */
  mono?: boolean
  clearable?: boolean
}

export function input(value: string, onInput: (value: string) => unknown, options: InputOptions = {}): VNode {
  const { describes, describedBy, invalid, mono, ...more } = options
  return view('el-input', {
    'modelValue': value, 'onUpdate:modelValue': onInput, 'aria-label': describes, 'aria-describedby': describedBy,
    'aria-invalid': invalid === true, 'autocomplete': 'off',
    ...more, 'named': undefined,
    ...more.type === 'textarea' && { rows: more.rows ?? 5, resize: 'vertical' },
    ...mono && { spellcheck: false, class: 'mono' },
  })
}

export interface Option {
  value: string
  label: string
  /** Shown at the right of the label, and searched as well. */
  hint?: string
}

export interface SelectOptions extends Labelled {
  placeholder?: string
  describes?: string
  clearable?: boolean
  /** Whether typing filters the options. */
  searched?: boolean
  /** Whether the typed text is also an option. */
  free?: boolean
  /** Called with the typed text, instead of filtering the options. */
  onSearch?: (text: string) => unknown
  /** Called when the list closes. */
  onClose?: () => unknown
}

/** A list to choose one option from. */
export function select(value: string, options: readonly Option[], onChange: (value: string) => unknown, more: SelectOptions = {}): VNode {
  return viewSelect(value, options, chosen => onChange(typeof chosen === 'string' ? chosen : ''), more)
}

/** A list to choose any number of options from. */
export function multiSelect(
  values: readonly string[], options: readonly Option[], onChange: (values: string[]) => unknown, more: SelectOptions = {},
): VNode {
  const change = (chosen: unknown): unknown => onChange(Array.isArray(chosen) ? chosen.filter(each => typeof each === 'string') : [])
  // The array is passed as it is. A copy would look like a new selection, and the list would discard the typed text.
  return viewSelect(values, options, change, { ...more, multiple: true })
}

function viewSelect(
  modelValue: unknown, options: readonly Option[], onChange: (value: unknown) => unknown, more: SelectOptions & { multiple?: boolean },
): VNode {
  const { id, placeholder, describes, named, clearable, searched, free, multiple, onSearch, onClose } = more
  const { noOptions, noMatch, list, pair } = texts.value.common
  // The selection is outside the field that a screen reader reads, so the field's name has to include it.
  const name = describes ?? named
  const chosen = [modelValue].flat().flatMap(value => options.find(option => option.value === value)?.label ?? (typeof value === 'string' ? value : []))
  const shown = list(chosen.filter(Boolean)) || placeholder
  return view('el-select', {
    id, modelValue, multiple, clearable,
    // If there is an option with an empty value, it counts as a selection.
    'emptyValues': options.some(({ value }) => value === '') ? [null, undefined] : ['', null, undefined], 'valueOnClear': '',
    'onUpdate:modelValue': onChange, 'placeholder': placeholder ?? '', 'aria-label': name && shown ? pair(name, shown) : describes,
    'filterMethod': onSearch,
    'onVisibleChange': (isOpen: boolean) => isOpen ? undefined : onClose?.(),
    'filterable': searched === true || free === true, 'allowCreate': free, 'defaultFirstOption': true, 'reserveKeyword': false,
    'noDataText': noOptions, 'noMatchText': noMatch, 'popperClass': 'relay-popper',
  }, {
    default: () => options.map(option => view('el-option', { key: option.value, value: option.value, label: option.label }, {
      default: option.hint === undefined ? undefined : () => [option.label, <span class="relay-option-hint">{option.hint}</span>],
    })),
  })
}

/** Binds a component to a value in both directions. */
export interface Model<T> { 'modelValue': T, 'onUpdate:modelValue': (value: T) => void }

export function model<T>(modelValue: T, onChange: (value: T) => void): Model<T> {
  return { modelValue, 'onUpdate:modelValue': onChange }
}

/** Binds a component to a field of a reactive object, such as the value of a ref. */
export function bind<T extends object, K extends keyof T>(of: T, name: K): Model<T[K]> {
  return model(of[name], value => {
    of[name] = value
  })
}

/** The lines below a control: a hint, and what is wrong with its value. */
interface Notes { hint?: string | undefined, problem?: string | undefined }

/** A labelled text box. */
export function inputField(label: string, model: Model<string>, options: InputOptions & Notes = {}): VNode {
  const { hint, problem, ...more } = options
  const view = (labelled: Labelled): VNode => {
    return input(model.modelValue, model['onUpdate:modelValue'], { ...labelled, ...more, invalid: problem !== undefined })
  }
  return <Field label={label} hint={hint} problem={problem}>{view}</Field>
}

/** A labelled list to choose one option from. */
export function selectField(label: string, model: Model<string>, options: readonly Option[], more: SelectOptions & Notes = {}): VNode {
  const view = (labelled: Labelled): VNode => select(model.modelValue, options, model['onUpdate:modelValue'], { ...labelled, ...more })
  return <Field label={label} hint={more.hint}>{view}</Field>
}

/** An option whose label is its value. */
export function plain(value: string): Option {
  return { value, label: value }
}

/** The options for values with names. */
export function optionsOf(names: Readonly<Record<string, string>>): Option[] {
  return Object.entries(names).map(([value, label]) => ({ value, label }))
}

export interface CheckboxOptions {
  describes?: string
  disabled?: boolean
  /** Shows the mark of a group that is ticked only in part. */
  partly?: boolean
}

/** A labelled checkbox. */
export function checkbox(label: VNodeChild, model: Model<boolean>, { describes, disabled, partly }: CheckboxOptions = {}): VNode {
  return view('el-checkbox', { ...model, disabled, 'indeterminate': partly === true, 'aria-label': describes }, {
    default: label === undefined ? undefined : () => label,
  })
}

/** A control with its label above it, and a hint or a problem below it. The control accepts a `Labelled`. */
export const Field = defineComponent({
  props: { label: { type: String, required: true }, hint: { type: String }, problem: { type: String } },
  setup(props, { slots }) {
    const id = useId()
    return () => {
      const hasMore = props.problem !== undefined || props.hint !== undefined
      const labelled: Labelled = { id, named: props.label, ...hasMore && { describedBy: `${id}-more` } }
      return (
        <div class="relay-field">
          <label class="relay-label" for={id}>{props.label}</label>
          {slots.default?.(labelled)}
          {hasMore && (
            <div id={`${id}-more`}>
              {props.problem !== undefined && <span class="relay-problem" role="alert">{props.problem}</span>}
              {props.hint !== undefined && <span class="relay-hint">{props.hint}</span>}
            </div>
          )}
        </div>
      )
    }
  },
})

/** A modal dialog, which keeps the focus until it is closed. */
export const Dialog = defineComponent({
  props: {
    title: { type: String, required: true },
    /** Whether only a button inside can close the dialog. */
    insists: Boolean,
  },
  emits: ['close'],
  setup: (props, { emit, slots }) => () => view('el-dialog', {
    // The dialog is moved out of the page's element, which declares the language.
    lang: locale.value, closeOnClickModal: false, closeOnPressEscape: !props.insists, showClose: !props.insists,
    modelValue: true, title: props.title, width: '36rem', appendToBody: true, class: 'relay-body', onClose: () => emit('close'),
  }, { default: slots.default }),
})

/** A form in a dialog, with its buttons. */
export const FormDialog = defineComponent({
  props: {
    title: { type: String, required: true },
    /** The text of the submit button. */
    verb: { type: String, required: true },
    task: { type: Object as PropType<Task> },
  },
  emits: ['close', 'submit'],
  setup(props, { emit, slots }) {
    const close = (): void => emit('close')
    const form = shallowRef<HTMLFormElement>()
    /** Focuses the first invalid field, because it may be out of view. */
    const submit = async (): Promise<void> => {
      emit('submit')
      await nextTick()
      form.value?.querySelector('.relay-problem')?.closest('.relay-field, fieldset')?.querySelector('input')?.focus()
    }
    const viewForm = (): VNode => (
      <form ref={form} onSubmit={submitting(submit)}>
        {slots.default?.()}
        {props.task && viewProblem(props.task)}
        <div class="relay-row end">
          {button(texts.value.common.cancel, close)}
          {button(props.verb, undefined, { kind: 'primary', submits: true, busy: props.task?.isBusy === true })}
        </div>
      </form>
    )
    return () => <Dialog title={props.title} onClose={close}>{viewForm}</Dialog>
  },
})

/** A submit handler that runs `act` instead of loading another page. */
export function submitting(act: () => unknown): (event: Event) => void {
  return event => {
    event.preventDefault()
    act()
  }
}

/** A panel beside the page, or over all of it on a phone. Its content has its own header. */
export const Drawer = defineComponent({
  props: { title: { type: String, required: true } },
  emits: ['close'],
  setup: (props, { emit, slots }) => () => view('el-drawer', {
    lang: locale.value, modelValue: true, title: props.title, size: 'min(40rem, 100vw)', withHeader: false, appendToBody: true, class: 'relay-body',
    onClose: () => emit('close'),
  }, { default: slots.default }),
})

/** Tabs. Only the current one shows its content. */
export function tabs<T extends string>(
  current: T, names: readonly (readonly [name: T, label: string])[], content: () => VNodeChild, onChange: (name: T) => unknown,
): VNode {
  return view('el-tabs', {
    'modelValue': current,
    'onUpdate:modelValue': (value: unknown) => {
      const next = names.find(([name]) => name === value)
      if (next) onChange(next[0])
    },
  }, {
    default: () => names.map(([name, label]) => view('el-tab-pane', { key: name, name, label }, {
      default: name === current ? content : undefined,
    })),
  })
}

/** A row of options to choose one from. */
export function choice<T extends string>(name: string, model: Model<T>, options: readonly (readonly [value: T, label: string])[]): VNode {
  return view('el-radio-group', { ...model, 'size': 'small', 'aria-label': name }, {
    default: () => options.map(([value, label]) => view('el-radio-button', { key: value, value }, { default: () => label })),
  })
}

/** Shows a result for a few seconds. Anything other than a success stays longer. */
export function say(kind: 'good' | 'bad' | 'info', text: string): void {
  message({
    message: text, type: kind === 'good' ? 'success' : kind === 'bad' ? 'error' : 'info', customClass: 'relay-message',
    duration: kind === 'good' ? 5000 : 12_000, showClose: true, grouping: true,
  })
}

/** A confirmation before an action that cannot be undone. */
export interface Question {
  title: string
  text: string
  /** The text of the confirm button. */
  verb: string
  kind?: 'primary' | 'danger'
}

/** Asks a question. */
export async function confirm({ title, text, verb, kind = 'danger' }: Question): Promise<boolean> {
  try {
    await messageBox.confirm(text, title, {
      confirmButtonText: verb, cancelButtonText: texts.value.common.cancel, customClass: 'relay-body', showClose: false,
      confirmButtonClass: kind === 'danger' ? 'el-button--danger' : '',
    })
    return true
  } catch {
    return false
  }
}

/** Asks for a text; empty without an answer. */
export async function prompt(title: string, text: string, verb: string, value: string): Promise<string> {
  const options = { confirmButtonText: verb, cancelButtonText: texts.value.common.cancel, inputValue: value, customClass: 'relay-body' }
  return await messageBox.prompt(text, title, options).then(answer => answer.value.trim(), () => '')
}

/** A table in the console's style; on a phone, a list of cards. */
export function table(name: string, heads: readonly string[], rows: readonly TableRow[]): VNode {
  return (
    <div class="relay-scroll" tabindex="0" role="region" aria-label={name}>
      {/* With the layout of a phone, the elements lose their implicit roles; these explicit ones remain. */}
      <table class="relay-table" role="table">
        <thead role="rowgroup">
          <tr role="row">{heads.map(head => <th scope="col" role="columnheader">{head}</th>)}</tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map(({ key, cells }) => (
            <tr key={key} role="row">
              {cells.map((cell, at) => at === 0 ? <th scope="row" role="rowheader">{cell}</th> : <td role="cell" data-name={heads[at]}>{cell}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export interface TableRow {
  key: string
  /** The first cell names the row. */
  cells: readonly VNodeChild[]
}
