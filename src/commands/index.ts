export { type CommandSettings, type Deliver, listen, type Origin } from './middleware'
