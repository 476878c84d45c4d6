import { isHmac } from '../../lib/crypto'
import { isRecent } from '../../lib/webhook-signature'
import type { Source } from '../source'
import { keyOfAlerts, readAlerts } from './alerts'
import { header } from '../fields'

export const grafana: Source = {
  name: 'grafana',

  read: ({ payload }) => readAlerts(payload, 'Grafana', ['panelURL', 'dashboardURL', 'generatorURL']),

  keyOf: ({ payload }) => keyOfAlerts(payload),

  isSigned: ({ headers }) => header(headers, 'x-grafana-alerting-signature') !== '',

  verify({ headers, raw }, secret) {
    const signature = header(headers, 'x-grafana-alerting-signature')
    const timestamp = header(headers, 'x-grafana-alerting-timestamp')
    if (timestamp === '') return isHmac(signature, secret, raw)
    return isRecent(timestamp) && isHmac(signature, secret, `${timestamp}:`, raw)
  },
}
