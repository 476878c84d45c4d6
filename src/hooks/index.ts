export { hookRoutes, type HookOptions } from './routes'
export { sources } from './sources'
export { languageOf, Templates, type Language } from './templates'
