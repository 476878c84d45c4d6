import { RelayError } from '../../errors'
import type { Language } from '../../texts/language'
import type { ParsedItem } from '../../message/model'
import type { Account } from '../../platform/port'
import type { Delivery } from '../delivery/delivery'

/** The items as this account sends them. Without a route they were checked at acceptance. */
export function itemsFor(account: Account, delivery: Delivery, items: readonly ParsedItem[]): readonly ParsedItem[] {
  if (!delivery.flow.route) return items
  try {
    return account.check(delivery.target, itemsForWay(delivery, items))
  } catch (error) {
    // The account may no longer accept this target.
    const wrong = RelayError.from(error)
    return items.map(() => wrong)
  }
}

const repetition: Readonly<Record<Language, string>> = {
  'en-US': '(May be a repetition: the first attempt was not confirmed.)',
  'zh-CN': '（可能重复：此前的发送未得到确认。）',
}

/**
 * The items of a delivery for the present way. After an unanswered way, the text begins with a line that says that it may be a
 * repetition.
 */
export function itemsForWay({ flow: { route, policy } }: Delivery, items: readonly ParsedItem[]): readonly ParsedItem[] {
  if (!route?.past.some(({ outcome }) => outcome === 'unanswered')) return items
  const first = items.findIndex(item => !(item instanceof RelayError) && item.type === 'text')
  const line = policy?.lang ? repetition[policy.lang] : `${repetition['zh-CN']} ${repetition['en-US']}`
  return items.map((item, index) => index === first && 'text' in item ? { ...item, text: `${line}\n${item.text}` } : item)
}
