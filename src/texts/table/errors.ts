/** The usual texts of failures, by their codes. The others always say what exactly is wrong. */
export const errors = {
  'unauthorized': [
    'missing or wrong API key: send it as "Authorization: Bearer <key>" or "X-API-Key: <key>"',
    '没有 API 密钥或密钥不正确：请用“Authorization: Bearer <密钥>”或“X-API-Key: <密钥>”发送',
  ],
  'not-found': ['no such delivery', '没有这条投递'],
  'no-such-target': ['no such target', '没有这个目标'],
  'file-not-found': [
    'no such file: it was never uploaded here, or has been removed since; upload it again',
    '没有这个文件：从未上传到这里，或已被清理；请重新上传',
  ],
  'in-progress': ['the first request with this Idempotency-Key is still under way: ask again later', '使用这个幂等键的首个请求仍在处理：请稍后再试'],
  'too-slow': ['the request body arrived too slowly: send it again', '请求体到达得太慢：请重新发送'],
  'key-reused': [
    'this Idempotency-Key was used for a different request: use a new key for a new message',
    '这个幂等键已用于另一个请求：新消息请用新的幂等键',
  ],
  'rate-limited': ['this key has reached its message rate: try again later', '已达到这个 API 密钥的发送频率上限：请稍后重试'],
  'queue-full': ['too many messages are waiting for this target: nothing was sent, try again later', '等待发往该目标的消息太多：没有发送，请稍后重试'],
  'internal': ['internal error: see the log of the bot for this request ID', '内部错误：请按请求 ID 查看机器人的日志'],
  'refused': ['the platform refused the message', '平台拒绝了这条消息'],
  'suppressed': ['another plugin of the bot suppressed the message: nothing was sent', '机器人的其他插件拦截了这条消息：没有发送'],
  'unsent': ['no bot is online: try again later', '没有机器人在线：请稍后重试'],
  'paused': ['this target is paused after repeated failures: nothing was sent, try again later', '该目标因连续失败而暂停：没有发送，请稍后重试'],
  'expired': ['the message expired before it could be delivered: nothing was sent', '消息在送达之前已过期：没有发送'],
  'store-down': ['the relay cannot use its data file: try again later', '无法使用数据文件：请稍后重试'],
  'standby': [
    'this relay stands by, because another process uses its data folder: nothing was sent, try again later',
    '本实例待命，数据目录正由另一个进程使用：没有发送，请稍后重试',
  ],
  'stopping': ['the relay is stopping: nothing was sent, try again later', '插件正在停止：没有发送，请稍后重试'],
  'unanswered': ['the platform did not answer in time: the message may have arrived', '平台没有及时应答：消息可能已送达'],
  'storage-full': [
    'the disk of the relay is full: nothing was stored or sent; free some space, then try again',
    '磁盘已满，没有保存或发送：请腾出空间后重试',
  ],
} as const
