import * as deliveries from './deliveries'
import * as duty from './duty'
import * as frame from './frame'
import * as integrations from './integrations'
import * as keys from './keys'
import * as overview from './overview'
import * as send from './send'

/** All texts of the page in English. Each tab has its own file. */
export const english = {
  ...frame.english, ...overview.english, ...deliveries.english, ...send.english, ...integrations.english, ...keys.english, ...duty.english,
}
export type Texts = typeof english

/** All texts in Chinese. */
export const chinese: Texts = {
  ...frame.chinese, ...overview.chinese, ...deliveries.chinese, ...send.chinese, ...integrations.chinese, ...keys.chinese, ...duty.chinese,
}
