import { Bot } from 'koishi'
import { requestOf } from './request'

/**
 * A view of a OneBot bot that notes the whole answers to its calls, which the adapter throws away (OneBot guide, "Answers").
 * For everything else it is the bot.
 */
export function recordAnswers(bot: Bot): { view: Bot, answers: unknown[] } {
  const answers: unknown[] = []
  const internal: unknown = bot.internal
  const request = requestOf(bot)
  if (!request || typeof internal !== 'object') return { view: bot, answers }
  const recording: unknown = Object.create(internal, {
    _request: {
      value: async (...args: Parameters<typeof request>) => {
        const answer = await request(...args)
        answers.push(answer)
        return answer
      },
    },
  })
  const view: unknown = Object.create(bot, { internal: { value: recording } })
  return { view: isBot(view) ? view : bot, answers }
}

function isBot(value: unknown): value is Bot {
  return value instanceof Bot
}
