export { hookRoutes, type HookOptions } from './routes'
export { languageOf, Templates, type Language } from './templates'
