import type { Logger } from 'koishi'
import type { MessageRelay } from 'koishi-plugin-message-relay'

export type Language = MessageRelay['language']

/** The texts of the plugin, in English and Chinese. */
const table = {
  'connected': ['connected to {broker}, subscriptions: {count}', '已连接 {broker}，订阅了 {count} 个主题'],
  'lost': ['no connection to {broker}; trying again', '与 {broker} 的连接已断开，正在重连'],
  'failed': ['{broker}: {reason}', '{broker}：{reason}'],
  'silent': ['the broker closed the connection without an answer', '服务器没有回应就断开了连接'],
  'not-started': ['cannot start with these settings: {reason}', '无法按这些设置启动：{reason}'],
  'check-account': ['{reason}: check `username`, `password` and the rules of the broker', '{reason}：请检查 `username`、`password` 和服务器的权限规则'],
  'check-version': ['{reason}: the broker must speak MQTT 5', '{reason}：服务器须支持 MQTT 5'],
  'check-ca': ['{reason}: set `ca` to the certificate of its authority', '{reason}：请把 `ca` 设为签发其证书的 CA 证书的路径'],
  'check-url': ['{reason}: does `url` begin as the port expects, with or without TLS?', '{reason}：请检查 `url` 的开头是否与端口相符（是否使用 TLS）'],
  'ended': ['{broker} ended the connection: {reason}', '{broker} 断开了连接：{reason}'],
  'not-subscribed': ['cannot subscribe to {topic}: {reason}', '无法订阅 {topic}：{reason}'],
  'twice': ['{topic} is in the list of subscriptions twice: only the first counts', '订阅列表中有两个 {topic}：只有第一个有效'],
  'refused': ['a message of {topic} was refused: {reason}', '{topic} 的一条消息被拒绝：{reason}'],
  'left': ['a message of {topic} stays at the broker for another {seconds} s: {reason}', '{topic} 的一条消息留在服务器上，{seconds} 秒后再取：{reason}'],
  'unanswered': ['an outcome could not be published to {topic}: {reason}', '无法把结果发布到 {topic}：{reason}'],
  'no-subscription': ['this subscription is not in the settings: change `clientId` to end it', '设置中没有这项订阅：更换 `clientId` 即可结束它'],
  'not-text': ['the payload is not UTF-8', '内容不是 UTF-8 文本'],
  'not-json': ['the payload begins like JSON, but is none: {reason}', '内容以 JSON 开头，但不是合法的 JSON：{reason}'],
  'two-targets': ['the subscription has a target: leave out to, group_id and user_id', '订阅已写明目标：请不要填写 to、group_id 和 user_id'],
  'no-target': ['a text needs a target: set `to` of the subscription', '纯文本需要目标：请设置订阅的 `to`'],
} as const satisfies Record<string, readonly [string, string]>

type TextId = keyof typeof table

/** The names of the places in a text, which are written as `{name}`. */
type Places<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | Places<Rest> : never
type ValuesOf<I extends TextId>
  = Places<typeof table[I][0]> extends never ? [] : [Readonly<Record<Places<typeof table[I][0]>, string | number>>]

/** Writes a text. */
export function write<I extends TextId>(language: Language, id: I, ...[values]: ValuesOf<I>): string {
  const places: Readonly<Record<string, string | number>> = values ?? {}
  const [english, chinese] = table[id]
  return (language === 'zh-CN' ? chinese : english).replace(/\{(\w+)\}/g, (_, name: string) => String(places[name]))
}

/** The log, in the language of the relay's. Each text becomes one line, whatever foreign words it has. */
export class Log {
  constructor(private readonly logger: Logger, readonly language: Language) {}

  info<I extends TextId>(id: I, ...values: ValuesOf<I>): void {
    this.logger.info('%s', printable(write(this.language, id, ...values)))
  }

  warn<I extends TextId>(id: I, ...values: ValuesOf<I>): void {
    this.logger.warn('%s', printable(write(this.language, id, ...values)))
  }
}

function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
}
