import type { Target } from '../message/model'
import type { DeliveryRecord, State } from './delivery'

/** Which deliveries are listed. */
export interface ListFilter {
  state?: State
  target?: Target
  /** Only those older than the delivery with this ID. */
  before?: string
  limit: number
}

/** Whether a delivery is one of those. */
export function matches({ id, state, target }: DeliveryRecord, filter: ListFilter): boolean {
  return (filter.state === undefined || state === filter.state)
    && (filter.target === undefined || (target.kind === filter.target.kind && target.id === filter.target.id))
    && (filter.before === undefined || id < filter.before)
}
