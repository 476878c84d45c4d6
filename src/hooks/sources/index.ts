import type { Source } from '../source'
import { alertmanager } from './alertmanager'
import { apprise } from './apprise'
import { dingtalk } from './dingtalk'
import { discord } from './discord'
import { feishu } from './feishu'
import { gitea } from './gitea'
import { github } from './github'
import { gitlab } from './gitlab'
import { grafana } from './grafana'
import { message } from './message'
import { sentry } from './sentry'
import { slack } from './slack'
import { uptimeKuma } from './uptime-kuma'
import { wecom } from './wecom'

/** All sources, in the order in which they are named. */
export const sources: readonly Source[] = [
  github, gitlab, gitea, grafana, alertmanager, sentry, uptimeKuma, apprise, slack, discord, dingtalk, wecom, feishu, message,
]
