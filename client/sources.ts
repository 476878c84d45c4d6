import type { Texts } from './texts/all'

/** The values for the setup of a source. */
export interface Parts {
  /** The address of the relay with its prefix. */
  url: string
  /** One or more targets, separated by commas without blanks. */
  target: string
  /** The key, or the secret of a source that signs. */
  key: string
  /** The filters and the language for the address of a hook, as a query; empty for none. */
  query: string
  /** The words of the snippets, in the language of the page. */
  words: Texts['integrations']['words']
}

/** The instructions of a source: fields of a form, or a text to paste. */
export interface Setup {
  /** The names are those in the source's own form. */
  fields: readonly (readonly [name: string, value: string])[]
  snippet?: string
}

export const groups = ['code', 'monitoring', 'scripts', 'ci', 'robots', 'other'] as const
export type Group = typeof groups[number]

/** A system that can call the relay. */
export interface Source {
  /** The name in the address of the page and, for hooks, in the address of the relay. */
  name: string
  label: string
  group: Group
  /** The instructions to show. */
  guide: 'curl' | 'shell' | 'actions' | 'gitlabCi' | 'jenkins' | 'forge' | 'gitlab' | 'gitee' | 'grafana' | 'alertmanager' | 'sentry' | 'kuma' | 'apprise' | 'robot' | 'message'
    | 'onebot' | 'own'
  /** The scope that its key needs. */
  scope: 'hooks' | 'send' | 'onebot'
  /** Whether the source signs its requests with a secret instead of sending a key. */
  signs?: true
  /** The header that names the event of a payload, and an example value. */
  event?: readonly [header: string, example: string]
  /** What its address can select: events, results, and whether there are branches. */
  filters?: { events?: readonly string[], status: readonly string[], hasBranch?: true }
  setup: (parts: Parts) => Setup
}

const hook = (name: string, { url, target, query }: Parts, key = ''): string => {
  const search = [key, query].filter(Boolean).join('&')
  return `${url}/hooks/${name}/${encodeURI(target)}${search && `?${search}`}`
}
const sendTo = ({ url, target }: Parts): string => `${url}/send/${encodeURI(target)}`
const bearer = '-H "Authorization: Bearer $RELAY_KEY"'
/** The options with which a job repeats a request without sending the message twice. */
const retryingCurl = 'curl -sS --fail-with-body --max-time 120 --retry 5 --retry-max-time 60 --retry-all-errors'

/** A chat robot, or another source whose callers only have an address. */
function robot(name: string, label: string, more: Partial<Source> = {}, parameter = 'key'): Source {
  return {
    name, label, group: 'robots', guide: 'robot', scope: 'hooks',
    setup: parts => ({ fields: [['Webhook URL', hook(name, parts, `${parameter}=${parts.key}`)]] }), ...more,
  }
}

/** The filters of a code host. */
const forge = (events: string, ...more: string[]) => (
  { events: events.split(' '), status: ['success', 'failure', 'cancelled', 'started', ...more], hasBranch: true as const }
)
const alerts = { status: ['firing', 'resolved'] }

const known: readonly Source[] = [
  {
    name: 'github', label: 'GitHub', group: 'code', guide: 'forge', scope: 'hooks', signs: true, event: ['x-github-event', 'push'],
    filters: forge('push pull_request pull_request_review issues issue_comment pull_request_review_comment commit_comment discussion discussion_comment release workflow_run check_run status deployment_status package gollum repository dependabot_alert code_scanning_alert secret_scanning_alert', 'action_required'),
    setup: parts => ({ fields: [['Payload URL', hook('github', parts)], ['Content type', 'application/json'], ['Secret', parts.key]] }),
  },
  {
    name: 'gitlab', label: 'GitLab', group: 'code', guide: 'gitlab', scope: 'hooks',
    filters: forge('push tag_push merge_request issue work_item note pipeline build deployment release feature_flag access_token vulnerability'),
    setup: parts => ({ fields: [['URL', hook('gitlab', parts)], ['Secret token', parts.key]] }),
  },
  {
    name: 'gitea', label: 'Gitea, Forgejo, Gogs', group: 'code', guide: 'forge', scope: 'hooks', signs: true, event: ['x-gitea-event', 'push'],
    filters: forge('push create delete pull_request pull_request_approved pull_request_rejected pull_request_comment issues issue_comment release wiki repository package status workflow_run action_run_failure action_run_recover action_run_success'),
    setup: parts => ({ fields: [['Target URL', hook('gitea', parts)], ['POST Content Type', 'application/json'], ['Secret', parts.key]] }),
  },
  {
    name: 'gitee', label: 'Gitee', group: 'code', guide: 'gitee', scope: 'hooks', filters: { ...forge('push tag_push merge_request issue note'), status: [] },
    setup: parts => ({ fields: [['URL', hook('gitee', parts)], ['WebHook 密码', parts.key]] }),
  },
  {
    name: 'grafana', label: 'Grafana', group: 'monitoring', guide: 'grafana', scope: 'hooks', filters: alerts,
    setup: parts => ({ fields: [['URL', hook('grafana', parts)], ['HTTP Method', 'POST'], ['Authorization Header Credentials', parts.key]] }),
  },
  {
    name: 'alertmanager', label: 'Alertmanager', group: 'monitoring', guide: 'alertmanager', scope: 'hooks', filters: alerts,
    setup: parts => ({ fields: [], snippet: `receivers:
  - name: chat
    webhook_configs:
      - url: ${JSON.stringify(hook('alertmanager', parts))}
        send_resolved: true
        http_config:
          authorization:
            credentials: ${JSON.stringify(parts.key)}` }),
  },
  {
    name: 'uptime-kuma', label: 'Uptime Kuma', group: 'monitoring', guide: 'kuma', scope: 'hooks', filters: { status: ['down', 'up', 'maintenance'] },
    setup: parts => ({
      fields: [
        ['Post URL', hook('uptime-kuma', parts)],
        ['Request Body', 'Preset - application/json'],
        ['Additional Headers', JSON.stringify({ Authorization: `Bearer ${parts.key}` })],
      ],
    }),
  },
  // Sentry signs with a secret that it chooses itself. The key in the address takes precedence over the signature, and needs no setting.
  robot('sentry', 'Sentry', { group: 'monitoring', guide: 'sentry', filters: { events: ['event_alert', 'error', 'issue', 'metric_alert'], ...alerts }, event: ['sentry-hook-resource', 'event_alert'] }),
  {
    name: 'curl', label: 'curl', group: 'scripts', guide: 'curl', scope: 'send',
    setup: parts => ({ fields: [], snippet: `curl -d "${parts.words.hello}" -H "Authorization: Bearer ${parts.key}" "${sendTo(parts)}"` }),
  },
  {
    name: 'shell', label: 'Shell', group: 'scripts', guide: 'shell', scope: 'send',
    setup: parts => ({ fields: [], snippet: `RELAY_KEY='${parts.key}'
RELAY_URL='${sendTo(parts)}'

# ${parts.words.line}
curl -d "${parts.words.done}" ${bearer} "$RELAY_URL"

# ${parts.words.output}
make 2>&1 | tail -50 | curl --data-binary @- ${bearer} "$RELAY_URL"

# ${parts.words.file}
curl -T report.pdf ${bearer} "$RELAY_URL/"` }),
  },
  {
    name: 'github-actions', label: 'GitHub Actions', group: 'ci', guide: 'actions', scope: 'send',
    setup: parts => ({ fields: [['RELAY_KEY', parts.key]], snippet: `- name: ${parts.words.step}
  if: failure()
  continue-on-error: true
  env:
    RELAY_KEY: \${{ secrets.RELAY_KEY }}
    TEXT: |-
      \${{ github.repository }}: ${parts.words.failed('${{ github.workflow }}', '${{ github.ref_name }}')}
      \${{ github.server_url }}/\${{ github.repository }}/actions/runs/\${{ github.run_id }}
  run: >-
    ${retryingCurl}
    ${bearer} -H "Idempotency-Key: $GITHUB_REPOSITORY/$GITHUB_RUN_ID/$GITHUB_JOB"
    --data-raw "$TEXT" "${sendTo(parts)}"` }),
  },
  {
    name: 'gitlab-ci', label: 'GitLab CI', group: 'ci', guide: 'gitlabCi', scope: 'send',
    setup: parts => ({ fields: [['RELAY_KEY', parts.key]], snippet: `notify:
  stage: .post
  image:
    name: curlimages/curl
    entrypoint: ['']
  when: on_failure
  allow_failure: true
  variables:
    GIT_STRATEGY: none
  script:
    - >-
      ${retryingCurl}
      ${bearer} -H "Idempotency-Key: gitlab/$CI_PIPELINE_ID/notify"
      --data-raw "${parts.words.failed('$CI_PROJECT_PATH', '$CI_COMMIT_REF_NAME')} $CI_PIPELINE_URL" "${sendTo(parts)}"` }),
  },
  {
    name: 'jenkins', label: 'Jenkins', group: 'ci', guide: 'jenkins', scope: 'send',
    setup: parts => ({ fields: [['relay-key', parts.key]], snippet: `post {
  failure {
    withCredentials([string(credentialsId: 'relay-key', variable: 'RELAY_KEY')]) {
      sh returnStatus: true, script: '''
        ${retryingCurl} \\\\
          ${bearer} -H "Idempotency-Key: $(echo "$BUILD_TAG" | sha256sum | cut -c 1-64)" \\\\
          --data-raw "${parts.words.failed('$JOB_NAME #$BUILD_NUMBER')} $BUILD_URL" "${sendTo(parts)}"
      '''
    }
  }
}` }),
  },
  robot('slack', 'Slack'),
  robot('discord', 'Discord'),
  robot('dingtalk', 'DingTalk', {}, 'access_token'),
  robot('wecom', 'WeCom'),
  robot('feishu', 'Feishu, Lark'),
  {
    name: 'apprise', label: 'Apprise', group: 'other', guide: 'apprise', scope: 'hooks',
    setup: parts => {
      const url = parts.url.replace(/^http(s?):\/\//, (_, secure: string) => `json${secure}://relay:${parts.key}@`)
      return { fields: [['Apprise URL', hook('apprise', { ...parts, url })]] }
    },
  },
  {
    name: 'onebot', label: 'OneBot 11', group: 'other', guide: 'onebot', scope: 'onebot',
    setup: ({ url, target, key, words }) => {
      const [, kind, id] = /^(?:\w+:)?(group|private):([^,]+)$/.exec(target) ?? []
      const call = kind === 'private'
        ? `user_id=${id} -d message=${words.hello} "${url}/onebot/send_private_msg"`
        : `group_id=${id} -d message=${words.hello} "${url}/onebot/send_group_msg"`
      return {
        fields: [['HTTP API', `${url}/onebot`], ['Access token', key]],
        ...id !== undefined && { snippet: `curl -H "Authorization: Bearer ${key}" -d ${call}` },
      }
    },
  },
  robot('message', 'message', { group: 'other', guide: 'message' }),
  robot('push', 'Bark, PushDeer, Gotify', { group: 'other' }),
]

/**
 * The known sources, and those of the operator's own templates.
 *
 * @param names the sources that the relay accepts in addresses of `/hooks`
 */
export function sourcesOf(names: readonly string[]): Source[] {
  return [...known, ...names.filter(name => known.every(source => source.name !== name)).map(ownSource)]
}

/** A source with the operator's own template. */
export function ownSource(name: string): Source {
  return robot(name, name, { group: 'other', guide: 'own' })
}

/** The door of a source, as the filter of `GET /deliveries`. */
export function doorOf({ name, scope }: Source): string {
  return scope === 'hooks' ? `hooks/${name}` : scope
}
