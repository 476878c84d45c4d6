import type { Source } from '../source'
import { github } from './github'

/** All systems whose posts are understood. */
export const sources: readonly Source[] = [github]
