/** What Integrations says, in English. */
export const english = {
  integrations: {
    caller: 'What is to call', newKey: 'Make a key for it', keyTitle: 'A key for it',
    keyHint: 'Each caller gets a key of its own. The page does not know those that you have: make a new one here, or put yours in place of <key> below.',
    private: 'This is how this machine reaches the bot. For callers elsewhere, set selfUrl to the address that they reach. '
      + 'With mediaTransport url, the platform fetches files there as well: pass on /media/ too.',
    steps: 'Three steps', address: 'Address', waitingFor: (name: string) => `Waiting for the first message from ${name} …`,
    arrived: 'It has arrived', nothing: 'Nothing has come yet. The first message shows here within seconds.',
    try: 'Try its template', payload: 'A payload (JSON)', event: 'Event', eventHint: (header: string) => `The header ${header}`, render: 'See the message',
    take: 'Take the last real one', taken: (when: string) => `This came at ${when}.`,
    noPayload: 'Nothing that came from it is kept. The last payload of up to 64 KiB is, from when the relay was loaded, unless recordContent is none.',
    message: 'The message', noMessage: 'What the template makes of the payload shows here. Nothing is sent.',
    skipped: (why: string) => `Nothing would be sent: ${why}`,
    keyInSettings: 'Add this to keys of the plugin in koishi.yml (in the bot of this repository: as JSON to WEBHOOK_KEYS in .env), '
      + 'or enter it in the table keys of its settings page, lists with commas. After an edit of a file, start the bot again:',
    plainKey: 'A signature can only be checked with the key itself, not with its digest: keep it in a variable that the settings name.',
    open: 'Open its record',
    labels: { curl: 'curl, or a script', message: 'Whatever sends a title and a text' },
    own: (name: string) => `${name} (your template)`,
    doors: {
      curl: ['Open a shell where the script is to run.', 'Run this:', 'Look whether it says "code":0.'],
      forge: ['Open Settings → Webhooks of the repository, and add one.', 'Enter this address, with the type application/json:', 'Enter the key as Secret, choose the events, and save.'],
      gitlab: ['Open Settings → Webhooks of the project, and add one.', 'Enter this address:', 'Enter the key as Secret token, choose the triggers, and press Test.'],
      grafana: ['Open Alerting → Contact points, and add one of the type Webhook.', 'Enter this address, with the method POST:', 'Enter the key as Authorization Header Credentials, and press Test.'],
      alertmanager: ['Open alertmanager.yml, and add a webhook_config to a receiver.', 'Enter this address as url:', 'Put the key into a file, name that in http_config.authorization.credentials_file, and reload.'],
      sentry: ['Open Settings → Custom Integrations, and create an internal integration.', 'Enter this address as Webhook URL:', 'Enter its Client Secret as the secret of a key in the settings, and switch Alert Rule Action on.'],
      kuma: ['Open Settings → Notifications → Setup Notification, and choose Webhook.', 'Enter this as Post URL:', 'Add the header {"Authorization": "Bearer <key>"}, and press Test.'],
      apprise: ['Open the settings of what sends through Apprise.', 'Enter this address:', 'Send a test from there.'],
      robot: ['Open the settings of the program, where it asks for the webhook of the robot.', 'Enter this address:', 'Send a test from there.'],
      fields: ['Open the settings of the program, where it asks for the address of a webhook.', 'Enter this address:', 'Send a test from there.'],
      own: ['Put the template into the folder templates of the data folder.', 'Have this address called, with JSON:', 'Send a test from there.'],
    },
    ownSecret: (name: string, variable: string) => `${name} chooses the secret itself, and needs no key. Put the Client Secret that it shows into the variable ${variable}.`,
  },
}

/** The same in Chinese. */
export const chinese: typeof english = {
  integrations: {
    caller: '由谁调用', newKey: '为它新建密钥', keyTitle: '它的密钥',
    keyHint: '每个调用方使用各自的密钥。本页面不知道你已有的密钥：请在此新建，或用你的密钥替换下面的 <key>。',
    private: '这是本机访问机器人的地址。若要从别处调用，请把 selfUrl 设为调用方可以访问的地址。'
      + 'mediaTransport 为 url 时，平台也从这个地址下载文件，请一并转发 /media/。',
    steps: '三个步骤', address: '地址', waitingFor: name => `正在等待来自 ${name} 的第一条消息…`,
    arrived: '已收到', nothing: '还没有收到消息。收到第一条后几秒内就会显示在这里。',
    try: '试用模板', payload: '请求内容（JSON）', event: '事件', eventHint: header => `请求头 ${header}`, render: '查看消息',
    take: '取最近一次的真实内容', taken: when => `这是 ${when} 收到的内容。`,
    noPayload: '没有保留来自它的内容。本插件加载后会保留最近一次不超过 64 KiB 的请求内容，除非 recordContent 设为 none。',
    message: '消息', noMessage: '模板根据请求内容生成的消息会显示在这里，不会真正发送。',
    skipped: why => `不会发送：${why}`,
    keyInSettings: '把它加入 koishi.yml 中本插件的 keys（本仓库的机器人：以 JSON 写入 .env 的 WEBHOOK_KEYS），'
      + '或填入插件配置页的 keys 表格（列表用逗号分隔）。修改文件后请重新启动机器人：',
    plainKey: '校验签名需要密钥本身，而不是摘要：请把密钥存入环境变量，并在配置中引用。',
    open: '打开记录',
    labels: { curl: 'curl 或脚本', message: '任何发送标题和文本的程序' },
    own: name => `${name}（你的模板）`,
    doors: {
      curl: ['在要运行脚本的地方打开终端。', '运行：', '检查响应中是否有 "code":0。'],
      forge: ['打开仓库的 Settings → Webhooks，新建一个 Webhook。', '填入此地址，类型选 application/json：', '在 Secret 中填入密钥，选择事件并保存。'],
      gitlab: ['打开项目的 Settings → Webhooks，新建一个 Webhook。', '填入此地址：', '在 Secret token 中填入密钥，选择触发事件，点击 Test。'],
      grafana: ['打开 Alerting → Contact points，新建一个 Webhook 类型的联络点。', '填入此地址，方法选 POST：', '在 Authorization Header Credentials 中填入密钥，点击 Test。'],
      alertmanager: ['打开 alertmanager.yml，在 receiver 中加入 webhook_config。', '在 url 中填入此地址：', '把密钥写入文件，在 http_config.authorization.credentials_file 中指定该文件，然后重新加载。'],
      sentry: ['打开 Settings → Custom Integrations，新建 internal integration。', '在 Webhook URL 中填入此地址：', '把它的 Client Secret 作为密钥的 secret 写入设置，并打开 Alert Rule Action。'],
      kuma: ['打开 设置 → 通知 → 设置通知，选择 Webhook。', '在 Post URL 中填入：', '添加请求头 {"Authorization": "Bearer <key>"}，点击测试。'],
      apprise: ['打开通过 Apprise 发送的程序的设置。', '填入此地址：', '在那里发送一条测试消息。'],
      robot: ['打开程序中填写机器人 Webhook 的设置。', '填入此地址：', '在那里发送一条测试消息。'],
      fields: ['打开程序中填写 Webhook 地址的设置。', '填入此地址：', '在那里发送一条测试消息。'],
      own: ['把模板放入数据目录的 templates 文件夹。', '让调用方以 JSON 请求此地址：', '从调用方发送一条测试消息。'],
    },
    ownSecret: (name, variable) => `${name} 自己选定签名的密钥，不必新建。请把它显示的 Client Secret 存入环境变量 ${variable}。`,
  },
}
