import type { Source } from '../source'
import { keyOfAlerts, readAlerts } from './alerts'
import { address } from './values'

export const alertmanager: Source = {
  name: 'alertmanager',
  read: ({ payload }) => readAlerts(payload, 'Alertmanager', ({ generatorURL: graph }) => address(graph)),
  keyOf: ({ payload }) => keyOfAlerts(payload),
}
