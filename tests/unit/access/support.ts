import { Usages } from '../../../src/access/usage'
import { RelayError } from '../../../src/errors'
import { ClosedStore } from '../../../src/relay/store/failures'
import type { Store } from '../../../src/relay/store/store'
import { words } from '../../../src/texts/text'
import { SimulatedClock } from '../../support/simulated-clock'
import { TestStorage } from '../../support/store'

/** A store that cannot be used. */
export const closed = (message?: string): Store => new ClosedStore(new RelayError('store-down', message === undefined ? undefined : words(message)), new AbortController().signal)

/** Counts the use of keys in memory only. */
export const counting = (): Usages => new Usages(() => closed())

/** The present store, and the folder in which each further one is opened. */
export class Stores {
  readonly storage = new TestStorage(new SimulatedClock())
  present = closed('the relay is starting')
  readonly get = (): Store => this.present

  /** Opens the file, again if it is open. */
  async open(): Promise<void> {
    await this.present.close()
    this.present = await this.storage.open(new AbortController().signal)
  }
}
