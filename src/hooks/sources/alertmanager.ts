import { address } from '../fields'
import type { Source } from '../source'
import { keyOfAlerts, readAlerts } from './alerts'

export const alertmanager: Source = {
  name: 'alertmanager',
  read: ({ payload }) => readAlerts(payload, 'Alertmanager', ({ generatorURL: graph }) => address(graph)),
  keyOf: ({ payload }) => keyOfAlerts(payload),
}
