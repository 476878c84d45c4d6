/** Texts about deliveries, queues and the data file. */
export const core = {
  'no-such-bot': ['there is no bot with this platform and self_id', '没有这个平台和 self_id 的机器人'],
  'no-bot-online': ['no bot is online', '没有机器人在线'],
  'nothing-sent-this-time': ['nothing was sent this time', '这次没有发送'],
  'nothing-sent': ['nothing was sent', '没有发送'],
  'paused-because': [
    'this target is paused after repeated failures ({reason}): nothing was sent, try again later',
    '该目标因连续失败而暂停（{reason}）：没有发送，请稍后重试',
  ],
  'ordered-for-later': ['it was ordered for later', '定时发送'],
  'waits-for-digest': ['it waits for the next digest', '等待下一条汇总'],
  'quiet-hours-until': ['quiet hours until {time}', '免打扰至 {time}'],
  'other-parts-sent': ['{failure} (the other parts of the message were sent)', '{failure}（消息的其余部分已发送）'],
  'platform-refused-it': ['the platform refused it', '平台拒绝了请求'],
  'nothing-done-try-later': ['nothing was done, try again later', '没有执行，请稍后重试'],
  'platform-did-not-answer': ['the platform did not answer in time', '平台没有及时应答'],
  'ended-before-answer': ['the relay ended before the answer', '插件在应答到达之前停止了'],
  'no-answer-in-time': ['no answer in time', '没有及时应答'],
} as const
