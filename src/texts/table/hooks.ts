/** Texts about the sources of /hooks. */
export const hooks = {
  'no-such-key-hooks': [
    'missing or wrong API key: end the address with "?key=<key>", or send "Authorization: Bearer <key>"',
    '没有 API 密钥或密钥不正确：请在地址末尾加上“?key=<密钥>”，或发送“Authorization: Bearer <密钥>”',
  ],
  'no-such-key-signed': [
    'missing or wrong API key: end the address with "?key=<key>", or send "Authorization: Bearer <key>", or enter a key that signs as the secret',
    '没有 API 密钥或密钥不正确：请在地址末尾加上“?key=<密钥>”，或发送“Authorization: Bearer <密钥>”，或把用于签名的密钥填为 Secret',
  ],
  'no-such-token': [
    'wrong token: {header} matches no key; give the sender a key that is allowed hooks',
    '令牌不正确：{header} 与任何密钥都不符；请给发送方一个有 hooks 权限的密钥',
  ],
  'no-such-key-or-secret': [
    'neither the key nor the secret of the signature matches a key: give the sender one that is allowed hooks',
    '密钥和签名所用的 Secret 都与任何密钥不符：请给发送方一个有 hooks 权限的密钥',
  ],
  'too-many-unproven': [
    'too many requests with a signature or a key in the body arrive at once: send it again later',
    '同时到达的待验证请求（带签名，或密钥在请求体中）太多：请稍后重新发送',
  ],

  'path-not-utf8': ['the path of the address is not UTF-8: percent-encode its text', '地址的路径不是 UTF-8：请对其中的文本做百分号编码'],
  'address-goes-on': [
    'the address goes on behind the target: it is /hooks/{name}/<target>, and several targets have commas between them',
    '地址在目标之后还有内容：应为 /hooks/{name}/<目标>，多个目标以逗号分隔',
  ],
  'address-without-target': [
    'the address ends without a target: it is /hooks/{name}/<target>, with group:<id>, private:<id> or a name',
    '地址中没有目标：应为 /hooks/{name}/<目标>，目标为 group:<群号>、private:<QQ 号> 或名称',
  ],
  'use-methods': ['use {methods}', '请使用 {methods}'],
  'no-such-source': ['no such source', '没有这个来源'],
  'no-such-source-but': [
    'no such source: the address is /hooks/<source>/<target>, with one of {names}, or a name of your own: {rule}, and not be "{digest}"',
    '没有这个来源：地址为 /hooks/<来源>/<目标>，来源为 {names} 之一，或自取的名称：{rule}，且不能是“{digest}”',
  ],
  'no-such-source-near': [
    'no such source: the address is /hooks/{nearest}/<target>; another system needs a name that is less alike, or a template of this name',
    '没有这个来源：地址为 /hooks/{nearest}/<目标>；若是另一个系统，请换一个不相近的名称，或为这个名称建立模板',
  ],
  'source-name-rule': [
    'its name must be 1 to 64 letters (a to z), digits, dots, underscores and hyphens, and begin with a letter or digit',
    '名称由 1 到 64 个英文字母、数字、点、下划线和连字符组成，以字母或数字开头',
  ],
  'source-exists': ['there is a source "{name}" already: choose another name', '已有来源“{name}”：请换一个名称'],

  'no-payload-kept': ['no payload of this source is kept', '没有保存这个来源的内容'],
  'no-payload': [
    'no payload of this source is kept: none has come, or the last was larger than 64 KiB, or the setting recordContent is none',
    '没有保存这个来源的内容：还没有收到，或最近一次超过 64 KiB，或 recordContent 设为 none',
  ],
  'give-payload': ['no payload of this source is kept: give one as payload', '没有保存这个来源的内容：请用 payload 给出'],
  'payload-object': ['payload must be an object', 'payload 应为对象'],
  'event-text': ['event must be text', 'event 应为文本'],
  'template-text': ['template must be text', 'template 应为文本'],
  'no-template': ['there is no template of this name', '没有这个名称的模板'],
  'no-own-template': ['there is no template of your own of this name', '没有这个名称的自定义模板'],
  'template-flaw': ['template: {reason}', '模板：{reason}'],
  'template-failed': ['{id} the template of {name} failed, so a plain text is sent: {reason}', '{id} {name} 的模板出错，改为发送纯文本：{reason}'],
  'digest-template-failed': ['the template of digests failed, so a plain list is sent: {reason}', '汇总的模板出错，改为发送纯列表：{reason}'],
  'templates-unreadable': ['the templates in {folder} are not used: the folder cannot be read ({reason})', '未使用 {folder} 中的模板：无法读取该目录（{reason}）'],
  'template-unusable': ['the template {file} cannot be used: {reason}', '模板 {file} 无法使用：{reason}'],
  'template-unwritten': [
    'the template cannot be written ({reason}): make the data folder writable, and free some space',
    '模板无法写入（{reason}）：请让数据目录可写，并腾出空间',
  ],

  'payload-no-object': ['the payload must be a JSON object', '内容应为 JSON 对象'],
  'no-event-of': ['this is not an event of {sender}: it has no {field}', '这不是 {sender} 的事件：没有 {field}'],
  'no-event-field': ['this is not a {sender} event: it has no {field}', '这不是 {sender} 的事件：没有 {field}'],
  'no-event-header': ['this is not a {sender} event: the header {header} is missing', '这不是 {sender} 的事件：缺少请求头 {header}'],
  'no-alerts': [
    'this is not a notification of {sender}: it has no alerts; use its default payload',
    '这不是 {sender} 的通知：没有 alerts；请使用其默认的内容格式',
  ],
  'no-heartbeat': ['there is neither a heartbeat nor a msg', '既没有 heartbeat 也没有 msg'],
  'kind-with-content': ['{field} must be one of {kinds}, with its content', '{field} 应为 {kinds} 之一，并带有相应内容'],
  'no-text': ['there is no text', '没有文本'],
  'no-text-field': [
    'there is no text: send it as message, text, msg, content or body; title is optional',
    '没有文本：请用 message、text、msg、content 或 body 发送；title 可以省略',
  ],
  'no-content': ['there is neither content nor an embed or a component with text', '没有 content，也没有含文本的 embed 或组件'],

  'skipped': ['skipped: {why}', '已跳过：{why}'],
  'waits-log': ['{state}: {reason}', '{state}：{reason}'],
  'skip-kind': ['{kind} events produce no message', '{kind} 事件不发送消息'],
  'skip-action': ['its action "{value}" produces no message', 'action 为“{value}”的事件不发送消息'],
  'skip-state': ['its state "{value}" produces no message', '状态为“{value}”的事件不发送消息'],
  'skip-without-action': ['events without an action produce no message', '没有 action 的事件不发送消息'],
  'skip-without-state': ['events without a state produce no message', '没有状态的事件不发送消息'],
  'skip-started': ['the start of a run is told where the address asks for status=started', '默认不通知运行开始：如有需要，请在地址中加上 status=started'],
  'skip-other-event': ['not one of the events that were asked for', '不是地址中要求的事件'],
  'skip-other-branch': ['not on a branch that was asked for', '不在地址中要求的分支上'],
  'skip-other-status': ['not with a status that was asked for', '不是地址中要求的状态'],
  'template-gives-no-text': ['its template gives no text', '模板没有输出文本'],
  'skip-codeup-test': ['a test of Codeup produces no message', 'Codeup 的测试请求不发送消息'],
  'skip-own-note': ['GitLab wrote it itself', '由 GitLab 自动生成'],
  'skip-job': ['of jobs only failures are told', '作业只在失败时通知'],
  'skip-branch-created': ['the push of the branch is told', '该分支的推送会另行通知'],
  'skip-tag-push': ['that the tag was created is told', '标签的创建会另行通知'],
  'skip-for-run': ['its workflow_run is told', '对应的 workflow_run 会另行通知'],
  'skip-for-comments': ['its comments are told by themselves', '其中的评论会分别通知'],
  'skip-no-page': ['no page was changed', '没有页面变更'],
  'skip-no-commits': ['it brings no commits', '没有新的提交'],
} as const
