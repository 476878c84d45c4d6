/** What the config page shows above the settings, in Koishi's Markdown. */
export const usage = `
CI 任务与监控系统通过 HTTP 调用本插件，它把文本、图片、文件和视频送到群聊与私聊。每一项都可以留空：依次取环境变量和默认值。

CI jobs and monitoring systems call this plugin over HTTP; it delivers text, images, files and videos to groups and private
chats. Every field may stay empty: its environment variable and then its default take its place.

\`\`\`sh
curl -H "Authorization: Bearer <API key>" -d '{"group_id": "123456", "msg": "hello"}' http://127.0.0.1:<port>/webhook
\`\`\`
`
