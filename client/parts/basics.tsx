import type { VNode, VNodeChild } from 'vue'
import type { Delivery } from '../api'
import { textOf } from '../fields'
import { sourcesOf, type Source } from '../sources'
import { texts, wordFor } from '../texts'

/** An important message, which a screen reader announces. */
export function notice(kind: 'info' | 'good' | 'doubt' | 'bad', text: VNodeChild): VNode {
  return <p class={['relay-notice', kind]} role={kind === 'bad' ? 'alert' : 'status'}>{text}</p>
}

/** A part of a tab, with its heading. */
export function section(title: string, content: VNodeChild, aside?: VNodeChild): VNode {
  return (
    <section class="relay-section">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {content}
    </section>
  )
}

/** A name above its value; a long one takes the whole line. */
export function fact(name: string, value: VNodeChild, isLong = false): VNode {
  return (
    <div class={{ 'relay-whole': isLong }}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

/** Whether only a part of a delivery arrived. */
export function isPartlySent({ state, results }: Pick<Delivery, 'state' | 'results'>): boolean {
  return state !== 'queued' && state !== 'scheduled' && state !== 'sending' && new Set(results.map(({ success }) => success)).size > 1
}

/** The display name of a caller. */
export function callerOf({ key, door }: Pick<Delivery, 'key' | 'door'>): string {
  // The relay itself sends alerts, digests and replies to commands.
  return key || (['alert', 'digest', 'commands'].includes(door) ? '–' : texts.value.deliveries.master)
}

/** The name of a source, in the language of the page. */
export function labelOf({ name, label, guide }: Source): string {
  const t = texts.value.integrations
  return guide === 'own' ? t.own(name) : wordFor({ [name]: label, ...t.labels }, name)
}

/** The name of the source of a delivery, in the language of the page. */
export function labelOfDoor(door: string): string {
  const name = door.replace('hooks/', '')
  const source = sourcesOf([]).find(each => each.name === name)
  return name === door ? wordFor(texts.value.deliveries.doors, door) : source ? labelOf(source) : name
}

/** Why a delivery did not arrive, if known: the reason of its first failed item, or of its last attempt. */
export function reasonOf({ results, history }: Pick<Delivery, 'results' | 'history'>): string {
  const failed = results.find(({ success }) => success === false)
  return textOf(failed?.msg) || textOf(history.findLast(({ reason }) => textOf(reason) !== '')?.reason)
}

/** The state of a delivery, as a word. */
export function stateWord(delivery: Pick<Delivery, 'state' | 'results'>): string {
  return isPartlySent(delivery) ? texts.value.partly : wordFor(texts.value.states, delivery.state)
}

/** The state of a delivery, as a word with a mark. */
export function stateMark(delivery: Pick<Delivery, 'state' | 'results'>): VNode {
  return <span class={['relay-state', isPartlySent(delivery) ? 'partly' : delivery.state]}>{stateWord(delivery)}</span>
}

/** The outcome of an item or an attempt, as a word with a mark. */
export function outcomeMark(outcome: string): VNode {
  return <span class={['relay-state', outcome === 'sent' || outcome === 'unanswered' ? outcome : 'failed']}>{wordFor(texts.value.outcomes, outcome)}</span>
}
