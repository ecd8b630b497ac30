import { Gauge, type Registry } from 'prom-client'

export function createAccessMetrics(registry: Registry) {
  return {
    apiKeysExpiring: new Gauge({
      name: 'api_keys_expiring',
      help: 'API keys that end within seven days and that no other key replaces',
      registers: [registry],
    }),
  }
}
