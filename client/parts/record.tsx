import { defineComponent, onMounted, shallowRef, type VNode } from 'vue'
import { call, readDelivery, type Delivery } from '../api'
import { curlOf } from '../curl'
import { numberOf, textOf, textsOf, type Fields } from '../fields'
import { usePolling } from '../poll'
import { about } from '../state'
import { capital, describeHold, texts, wordFor, writeDuration, writeMoment } from '../texts'
import { fact, isPartlySent, labelOfDoor, notice, outcomeMark, callerOf, stateMark } from './basics'
import { button, closeButton, confirm, Drawer, say, type Question } from './elements'
import { CopyButton } from './copy'
import { describeItem } from './items'
import { describeChat, viewTarget } from './target'

/** The record of a delivery: beside the list if there is room, or else over it. */
export const RecordPane = defineComponent({
  props: { id: { type: String, required: true }, isBeside: Boolean },
  emits: ['close'],
  setup(props, { emit }) {
    const close = (): void => emit('close')
    return () => {
      const { title } = texts.value.record
      const record = <RecordView key={props.id} id={props.id} onClose={close} />
      if (!props.isBeside) return <Drawer title={title} onClose={close}>{() => record}</Drawer>
      const leave = (event: KeyboardEvent): void => {
        if (event.key === 'Escape') close()
      }
      return <aside class="relay-beside" aria-label={title} onKeydown={leave}>{record}</aside>
    }
  },
})

const RecordView = defineComponent({
  props: { id: { type: String, required: true } },
  emits: ['close'],
  setup(props, { emit }) {
    const delivery = shallowRef<Delivery>()
    const problem = shallowRef('')
    const path = `/deliveries/${encodeURIComponent(props.id)}`
    const look = usePolling(async () => {
      const reply = await call('GET', path)
      problem.value = reply.isRight ? '' : texts.value.common.failed(reply.msg)
      if (reply.isRight) delivery.value = readDelivery(reply.data)
    })

    /** Confirms an action, executes it and shows the result. */
    const act = async (question: Question, method: 'POST' | 'DELETE', to: string, done: string): Promise<boolean> => {
      if (!await confirm(question)) return false
      const { isRight, msg } = await call(method, to)
      if (isRight) say('good', done)
      else say('bad', texts.value.common.failed(msg))
      return isRight
    }
    const retry = async ({ state }: Delivery): Promise<void> => {
      const t = texts.value.record
      const text = state === 'unanswered' ? t.retryDoubt : t.retryText
      await act({ title: t.retryTitle, text, verb: t.retry, kind: 'primary' }, 'POST', `${path}/retry`, t.retried)
      await look()
    }
    const withdraw = async (): Promise<void> => {
      const t = texts.value.record
      if (await act({ title: t.withdrawTitle, text: t.withdrawText, verb: t.withdraw }, 'DELETE', path, t.withdrawn)) emit('close')
      else await look()
    }

    return () => {
      const t = texts.value.record
      const shown = delivery.value
      return (
        <article class="relay-record">
          <header>
            <h2>{shown ? viewTarget(shown.target, shown.bot) : t.title}</h2>
            {shown && stateMark(shown)}
            {closeButton(() => emit('close'))}
          </header>
          <div class="relay-record-body" tabindex="0" role="region" aria-label={t.items}>
            {problem.value && notice('bad', problem.value)}
            {shown && <RecordContent delivery={shown} />}
          </div>
          {shown && <footer class="relay-row">{viewActions(shown, retry, withdraw)}</footer>}
        </article>
      )
    }
  },
})

/** The states of deliveries that can be retried. */
export const retryable: ReadonlySet<string> = new Set(['failed', 'expired', 'unanswered'])

function viewActions(shown: Delivery, retry: (shown: Delivery) => unknown, withdraw: () => unknown): VNode[] {
  const t = texts.value.record
  const { id, state } = shown
  const url = `${about.value?.url ?? ''}/deliveries/${id}`
  if (retryable.has(state)) {
    return [button(t.retry, () => retry(shown), { kind: 'primary' }), <CopyButton text={curlOf('POST', `${url}/retry`)} label={t.curl} />]
  }
  if (state === 'queued' || state === 'scheduled') {
    return [button(t.withdraw, withdraw, { kind: 'danger' }), <CopyButton text={curlOf('DELETE', url)} label={t.curl} />]
  }
  return [<CopyButton text={curlOf('GET', url)} label={t.curl} />]
}

/** The tone of a state. */
const tones: Partial<Record<string, string>> = { sent: 'good', failed: 'bad', expired: 'bad', unanswered: 'doubt' }

/** The details of a delivery. */
const RecordContent = defineComponent({
  props: { delivery: { type: Object as () => Delivery, required: true } },
  setup: props => () => {
    const { delivery } = props
    const { state, items, history, results, hasContent, hold, calls } = delivery
    const t = texts.value.record
    const sent = results.filter(({ success }) => success === true).length
    const count = Math.max(items.length, ...results.map(({ index }) => numberOf(index) + 1))
    return (
      <div>
        <p class={['relay-notice', hold || isPartlySent(delivery) ? 'doubt' : tones[state] ?? 'info']}>
          {hold ? describeHold(hold) : isPartlySent(delivery) ? t.partly(sent, count) : wordFor(t.means, state)}
        </p>
        {viewFacts(delivery)}
        <h3>{t.items}</h3>
        {items.length === 0 && <p>{t.noContent}</p>}
        <ol class="relay-items">
          {Array.from({ length: count }, (_, at) => {
            const result = results.find(({ index }) => index === at)
            return <RecordItem key={at} id={delivery.id} at={at} item={items[at] ?? {}} result={result} hasContent={hasContent} />
          })}
        </ol>
        {state === 'sent' && !hasContent && items.length > 0 && <p class="relay-hint">{t.onlyPreview}</p>}
        {delivery.members.length > 0 && viewMembers(delivery.members)}
        {delivery.route.length > 0 && <h3>{t.route}</h3>}
        {delivery.route.length > 0 && <ol class="relay-timeline">{delivery.route.map(step => viewStep(step, describeChat(textOf(step.target))))}</ol>}
        <h3>{t.timeline}</h3>
        {history.length === 0 && <p>{t.noCalls}</p>}
        {/* A record keeps only the last calls. */}
        <ol class="relay-timeline">{history.map((step, at) => viewStep(step, t.call(calls - history.length + at + 1)))}</ol>
      </div>
    )
  },
})

function viewFacts({ id, bot, door, key, createdAt, updatedAt, expiresAt, sendAt, thread, digest, waitedMs, platformMs }: Delivery): VNode {
  const { record: t, deliveries } = texts.value
  return (
    <dl class="relay-facts">
      {fact(t.created, writeMoment(createdAt))}
      {fact(t.updated, writeMoment(updatedAt))}
      {sendAt && fact(t.sendAt, writeMoment(sendAt))}
      {expiresAt && fact(t.expires, writeMoment(expiresAt))}
      {fact(t.bot, bot || '–')}
      {door && fact(deliveries.door, labelOfDoor(door))}
      {fact(deliveries.key, callerOf({ door, key }))}
      {waitedMs !== undefined && fact(t.waited, writeDuration(waitedMs))}
      {thread && fact(t.thread, wordFor(t.deeds, thread))}
      {digest && fact(t.digest, viewLink(textOf(digest.id), t.inDigest(numberOf(digest.count)), digest.shown === true))}
      {platformMs > 0 && fact(t.platform, writeDuration(platformMs))}
      {fact(t.id, <span class="mono">{id}</span>, true)}
    </dl>
  )
}

/** How many deliveries of a digest are listed at most. */
const maxMembers = 50

/** The members of a digest. */
function viewMembers(members: readonly Fields[]): VNode {
  const t = texts.value.record
  return (
    <div>
      <h3>{t.members(members.length)}</h3>
      <ul class="relay-members">
        {members.slice(0, maxMembers).map(({ id, shown }, at) => <li>{viewLink(textOf(id), t.member(at + 1), shown === true)}</li>)}
      </ul>
      {members.length > maxMembers && <p class="relay-hint">{t.more(members.length - maxMembers)}</p>}
    </div>
  )
}

/** @param isShown whether the text of the member is in the digest */
function viewLink(id: string, label: string, isShown: boolean): VNode {
  return (
    <span>
      <a href={`#deliveries/${id}`}>{label}</a>
      {!isShown && <span class="relay-hint">{` ${texts.value.record.onlyCounted}`}</span>}
    </span>
  )
}

/** A call to the platform, or a way that failed. */
function viewStep({ at, took_ms: took, outcome, reason }: Fields, name: string): VNode {
  const { record: t, common } = texts.value
  return (
    <li>
      <div class="relay-row">
        <strong>{name}</strong>
        {outcomeMark(textOf(outcome))}
        <span class="relay-aside">
          {common.list([writeMoment(textOf(at)), ...took === undefined ? [] : [t.took(writeDuration(numberOf(took)))]])}
        </span>
      </div>
      {textOf(reason) && viewWhy(textOf(reason))}
    </li>
  )
}

/** One item of a delivery and its result. A picture is shown if its bytes are kept. */
const RecordItem = defineComponent({
  props: {
    id: { type: String, required: true },
    at: { type: Number, required: true },
    item: { type: Object as () => Fields, required: true },
    result: { type: Object as () => Fields },
    hasContent: Boolean,
  },
  setup(props) {
    const picture = shallowRef('')
    onMounted(async () => {
      if (props.item.type !== 'image' || !props.hasContent) return
      const { isRight, base64, headers } = await call('GET', `/deliveries/${props.id}/items/${props.at}`)
      const type = textOf(headers['content-type'])
      // Shows only pictures, because a file may be a page with scripts.
      if (isRight && base64) picture.value = `data:${/^image\/(?:png|jpeg|gif|webp)$/.test(type) ? type : 'image/png'};base64,${base64}`
    })
    return () => {
      const { item, result } = props
      return (
        <li>
          <div class="relay-row">
            <span class="relay-hint">{describeItem(item)}</span>
            {result && outcomeMark(result.success === true ? 'sent' : textOf(result.outcome))}
          </div>
          {textOf(item.msg) && <div class="relay-said">{textOf(item.msg)}</div>}
          {picture.value && <img class="relay-picture" src={picture.value} alt={texts.value.record.picture(textOf(item.name))} />}
          {result && viewReason(result)}
        </li>
      )
    }
  },
})

function viewReason({ success, message_ids: ids, code, msg }: Fields): VNode | undefined {
  if (success === true) return textsOf(ids).length > 0 ? <div class="relay-hint">{texts.value.record.ids(textsOf(ids).join(', '))}</div> : undefined
  return viewWhy(textOf(msg) || textOf(code))
}

function viewWhy(reason: string): VNode {
  return <div class="relay-why">{capital(reason)}</div>
}
