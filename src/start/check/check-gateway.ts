import type { Config } from '../../config/config.ts'
import { probeTls } from '../../platform/outbound/probe-tls.ts'
import { isCertificateCode } from '../is-certificate-code.ts'
import type { CheckName, Finding } from './types.ts'

type Endpoint = { name: CheckName; setting: string; url: URL }

/**
 * Connects to the gateway, and to the token endpoints that are elsewhere, and completes the TLS handshake. No request is
 * sent.
 */
export async function checkGateway(config: Config): Promise<Finding[]> {
  const { GATEWAY_BASE_URL: base, GATEWAY_TIMEOUT_MS: timeoutMs } = config
  if (base === undefined) {
    const detail =
      'GATEWAY_BASE_URL is not set: the demo starts the sandbox gateway beside the service'
    return [{ name: 'gateway', status: 'skipped', detail }]
  }
  const endpoints = listEndpoints(config, new URL(base))
  return await Promise.all(endpoints.map((one) => check(one, timeoutMs)))
}

function listEndpoints({ accounts, sharedToken }: Config, base: URL): Endpoint[] {
  const sources = [...accounts.map(({ token }) => token), sharedToken]
  const origins = sources.flatMap((source) =>
    source?.kind === 'client' ? [new URL(source.url, base).origin] : [],
  )
  const others = [...new Set(origins)].filter((origin) => origin !== base.origin)
  return [
    { name: 'gateway', setting: 'GATEWAY_BASE_URL', url: base },
    ...others.map((origin) => {
      return { name: 'tokens' as const, setting: 'the token URL', url: new URL(origin) }
    }),
  ]
}

async function check({ name, setting, url }: Endpoint, timeoutMs: number): Promise<Finding> {
  const result = await probeTls(url, timeoutMs)
  if (result.kind === 'plain') {
    return { name, status: 'ok', detail: `plain http to ${url.host}: nothing to verify` }
  }
  if (result.kind === 'verified') {
    const until = result.validUntil.toISOString().slice(0, 10)
    const detail = `${result.protocol} with ${url.host}, certificate valid until ${until}`
    return { name, status: 'ok', detail }
  }
  return {
    name,
    status: 'failed',
    detail: `${url.host} ${explain(result.code, setting, timeoutMs)}`,
  }
}

function explain(code: string, setting: string, timeoutMs: number): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `has a certificate for another name: check ${setting}`
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `has a certificate that is not valid now (${code}): check the clock of this machine, or ask the gateway's operator`
  }
  if (isCertificateCode(code)) {
    return `has a certificate that is not trusted (${code}): for an authority of your own, set NODE_EXTRA_CA_CERTS to its file`
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `cannot be resolved (${code}): check ${setting} and the name servers of this machine`
  }
  if (code === 'ETIMEDOUT') {
    return `did not complete a connection within ${timeoutMs} ms: check ${setting}, and firewalls on the way`
  }
  return `cannot be reached (${code}): check ${setting}, and firewalls on the way`
}
