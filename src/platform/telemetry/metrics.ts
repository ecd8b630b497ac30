import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Default gauges that are named like counters; `nodejs_active_*` has the same values by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/**
 * Creates a registry with the default metrics of the process and `<service>_build_info`, whose label is the
 * running version.
 * @param service in snake case
 */
export function createRegistry(service: string, version: string): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  new Gauge({
    name: `${service}_build_info`,
    help: 'Always 1; the label is the running version',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1)
  return registry
}
