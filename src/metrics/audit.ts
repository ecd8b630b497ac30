import { Gauge, type Registry } from 'prom-client'

/** The checkpoints of the audit log. */
export function createAuditMetrics(registry: Registry) {
  return {
    auditCheckpointAge: new Gauge({
      name: 'audit_checkpoint_age_seconds',
      help: 'How long the oldest audit entry that is in no checkpoint has waited: ten to eleven minutes at most while a worker runs; NaN while the database is unreachable',
      registers: [registry],
    }),
  }
}
