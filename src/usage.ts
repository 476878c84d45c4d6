/** The text above the settings on the config page, in Koishi's Markdown. */
export const usage = `
CI 任务与监控系统通过 HTTP 调用本插件，它把文本、图片、文件和视频送到群聊与私聊。每一项都可以不填：
界面上显示的就是此时生效的值，依次取自环境变量和默认值；密钥不会显示。

CI jobs and monitoring systems call this plugin over HTTP; it delivers text, images, files and videos to groups and private
chats. Every field is optional: an empty one shows the effective value, which comes from its environment variable or else is the
default. Keys are not shown.

\`\`\`sh
curl -H "Authorization: Bearer <API key>" -d '{"group_id": "123456", "msg": "hello"}' http://127.0.0.1:<port>/webhook
\`\`\`
`
