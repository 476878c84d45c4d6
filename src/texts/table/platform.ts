/** Texts about bots and their platforms. */
export const platform = {
  'adapter-threw': ['the adapter threw {name}', '适配器抛出了 {name}'],
  'suppressed-by-plugin': ['another plugin of the bot suppressed the message', '机器人的其他插件拦截了这条消息'],
  'nothing-sent-try-later': ['nothing was sent, try again later', '没有发送，请稍后重试'],
  'may-have-arrived': ['the message may have arrived', '消息可能已送达'],
} as const
