export type { SimulatorOptions } from './options'
export type { Watcher } from './platform'
export { Simulator } from './simulator'
export type { SwitchedOn, SwitchName } from './switches'
export type {
  Call, DeliveredMedia, Fault, FaultHandle, FaultRule, LedgerEntry, MediaForm, Person, ProfileName, Saying, Segment, Target,
} from './types'
export type { Role } from './world'
