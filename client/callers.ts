import type { Texts } from './texts/all'

/** What can be told to call the relay. */
export interface Caller {
  name: string
  label: string
  /** The words of its three steps. */
  steps: keyof Texts['integrations']['doors']
  /** What it calls, `<target>` and `<key>` in it still to be put in. */
  address: string
  /** Whether it signs with the key, or with a secret that it chooses itself. The settings then have to hold that, and not a digest. */
  signs?: 'key' | 'secret'
  /** The header by which it says what a payload is about, where it has one, and an example. */
  event?: readonly [header: string, example: string]
}

const hook = (name: string, more = ''): string => `<url>/hooks/${name}/<target>${more}`

/** Those that are known, in the order in which they are offered. */
const known: readonly Caller[] = [
  { name: 'curl', label: 'curl', steps: 'curl', address: 'curl -H "Authorization: Bearer <key>" -d "Hello" "<url>/send/<target>"' },
  { name: 'github', label: 'GitHub', steps: 'forge', address: hook('github'), signs: 'key', event: ['x-github-event', 'push'] },
  { name: 'gitlab', label: 'GitLab', steps: 'gitlab', address: hook('gitlab'), signs: 'key' },
  { name: 'gitea', label: 'Gitea, Forgejo, Gogs', steps: 'forge', address: hook('gitea'), signs: 'key', event: ['x-gitea-event', 'push'] },
  { name: 'grafana', label: 'Grafana', steps: 'grafana', address: hook('grafana') },
  { name: 'alertmanager', label: 'Prometheus Alertmanager', steps: 'alertmanager', address: hook('alertmanager') },
  { name: 'sentry', label: 'Sentry', steps: 'sentry', address: hook('sentry'), signs: 'secret', event: ['sentry-hook-resource', 'event_alert'] },
  { name: 'uptime-kuma', label: 'Uptime Kuma', steps: 'kuma', address: hook('uptime-kuma') },
  { name: 'apprise', label: 'Apprise', steps: 'apprise', address: '<apprise>/hooks/apprise/<target>' },
  { name: 'slack', label: 'Slack', steps: 'robot', address: hook('slack', '?key=<key>') },
  { name: 'discord', label: 'Discord', steps: 'robot', address: hook('discord', '?key=<key>') },
  { name: 'dingtalk', label: '钉钉 DingTalk', steps: 'robot', address: hook('dingtalk', '?access_token=<key>') },
  { name: 'wecom', label: '企业微信 WeCom', steps: 'robot', address: hook('wecom', '?key=<key>') },
  { name: 'feishu', label: '飞书 Feishu, Lark', steps: 'robot', address: hook('feishu', '?key=<key>') },
  { name: 'message', label: 'message', steps: 'fields', address: hook('message', '?key=<key>') },
]

/** Those that are known and the operator's own templates. */
export function callersOf(sources: readonly string[]): Caller[] {
  const own = sources.filter(source => known.every(({ name }) => name !== source))
  return [...known, ...own.map(name => ({ name, label: name, steps: 'own' as const, address: hook(name, '?key=<key>') }))]
}

/** The address that a caller is given. */
export function addressFor({ address }: Caller, url: string, target: string, key: string): string {
  const apprise = url.replace(/^http(s?):\/\//, (_, secure: string) => `json${secure}://relay:${key}@`)
  return address.replace('<apprise>', apprise).replace('<url>', url).replace('<target>', target === '' ? '<target>' : encodeURI(target)).replaceAll('<key>', key)
}
