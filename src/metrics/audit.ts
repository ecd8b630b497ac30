import { Gauge, type Registry } from 'prom-client'

/** The chains of the audit log. Their heads are recorded outside the database by whoever scrapes them. */
export function createAuditMetrics(registry: Registry) {
  const registers = [registry]
  return {
    auditChainLag: new Gauge({
      name: 'audit_chain_lag_seconds',
      help: 'Everything written to the audit log so long ago is chained; NaN while the database is unreachable',
      registers,
    }),
    auditChainPosition: new Gauge({
      name: 'audit_chain_position',
      help: 'Position of the newest link of an account in the audit log; it never falls',
      labelNames: ['merchant'],
      registers,
    }),
    auditChainHash: new Gauge({
      name: 'audit_chain_hash',
      help: 'The first 48 bits of the hash of that link, as a whole number',
      labelNames: ['merchant'],
      registers,
    }),
  }
}
