import type { Source } from '../source'
import { alertmanager, grafana } from './alerts'
import { apprise } from './apprise'
import { discord } from './discord'
import { gitea } from './gitea'
import { gitee } from './gitee'
import { github } from './github'
import { gitlab } from './gitlab'
import { message, push } from './message'
import { dingtalk, feishu, wecom } from './robots'
import { sentry } from './sentry'
import { slack } from './slack'
import { uptimeKuma } from './uptime-kuma'

/** All built-in sources, in the order of lists. */
export const sources: readonly Source[] = [
  github, gitlab, gitea, gitee, grafana, alertmanager, sentry, uptimeKuma, apprise, slack, discord, dingtalk, wecom, feishu, message, push,
]
