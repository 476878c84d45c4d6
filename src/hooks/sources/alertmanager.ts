import type { Source } from '../source'
import { keyOfAlerts, readAlerts } from './alerts'

export const alertmanager: Source = {
  name: 'alertmanager',
  read: ({ payload }) => readAlerts(payload, 'Alertmanager', ['generatorURL']),
  keyOf: ({ payload }) => keyOfAlerts(payload),
}
