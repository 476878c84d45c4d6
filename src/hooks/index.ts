import { sources } from './sources'

export { digestWriter } from './digest'
export { LastPayloads } from './payloads'
export { Sources } from './registry'
export { hookRoutes, type HookOptions } from './routes'
export { keyIn } from './source'
export { Templates } from './templates'

/** The doors of the built-in sources, in the form of `Submission.door`. */
export const hookDoors: readonly string[] = sources.map(({ name }) => `hooks/${name}`)
