import type { Source } from '../source'
import { apprise } from './apprise'
import { dingtalk } from './dingtalk'
import { discord } from './discord'
import { feishu } from './feishu'
import { message } from './message'
import { slack } from './slack'
import { uptimeKuma } from './uptime-kuma'
import { wecom } from './wecom'

/** All sources, in the order in which they are named. */
export const sources: readonly Source[] = [uptimeKuma, apprise, slack, discord, dingtalk, wecom, feishu, message]
