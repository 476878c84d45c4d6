import type { Source } from '../source'
import { alertmanager } from './alertmanager'
import { gitea } from './gitea'
import { github } from './github'
import { gitlab } from './gitlab'
import { grafana } from './grafana'
import { sentry } from './sentry'

/** All systems whose posts are understood. */
export const sources: readonly Source[] = [github, gitlab, gitea, grafana, alertmanager, sentry]
