import { icons, type Context } from '@koishijs/client'
import { RelayPage } from './page'
import { RelayIcon } from './parts/icon'
import { texts } from './texts'
import './style.css'
import './overview.css'
import './deliveries.css'
import './setup.css'

/** Adds the page to the console. */
export default function (ctx: Context): void {
  icons.register('message-relay', RelayIcon)
  ctx.page({ path: '/message-relay', name: () => texts.value.title, icon: 'message-relay', order: 400, authority: 4, component: RelayPage })
}
