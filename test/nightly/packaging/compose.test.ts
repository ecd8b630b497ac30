import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SERVER_LIMITS } from '../../../src/http/server.ts'
import { readCompose, readOwn, STOP_S } from './deployments.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const { services, ours, edge } = readCompose()

/** Whether an IPv4 network, written as a CIDR, has the address. */
function isWithin(network: string, address = ''): boolean {
  const [base = '', bits] = network.split('/')
  const list = new BlockList()
  list.addSubnet(base, Number(bits))
  return list.check(address)
}

describe('compose.yaml', () => {
  it('runs the image without privileges, and waits longer than the service takes to stop', () => {
    expect(ours.map(([name]) => name)).toEqual(['migrate', 'web', 'worker', 'sandbox'])
    for (const [name, { user, stop_grace_period: grace }] of ours) {
      expect([name, user]).toEqual([name, '10001:10001'])
      if (name === 'web' || name === 'worker') {
        expect(Number.parseInt(grace ?? '', 10)).toBeGreaterThanOrEqual(STOP_S)
      }
    }
  })

  it('lets only the proxy speak for clients, and only at its own address', () => {
    const text = readOwn('compose.yaml')
    const [, trusted] = /TRUSTED_PROXIES: (.+)/.exec(text) ?? []
    const [, address] = /ipv4_address: ([\d.]+)/.exec(text) ?? []
    expect(trusted).toBe(address)
    expect(readOwn('deploy/compose/Caddyfile')).toContain('@private path /metrics')
    // Else a container that starts before the proxy may be given its address.
    expect([edge.subnet, edge.ip_range].map((net) => isWithin(net, address))).toEqual([true, false])
  })

  it('passes every setting of .env on, except those that it fixes itself', () => {
    const passing = ours.filter(([, { env_file: file }]) => file === '.env').map(([name]) => name)
    expect(passing).toEqual(['web', 'worker', 'sandbox'])
    const interpolated = readOwn('compose.yaml').match(/\$\{\w+/g) ?? []
    expect([...new Set(interpolated)].toSorted()).toEqual(
      ['PROXY_BIND', 'REVISION', 'SITE_ADDRESS', 'VERSION'].map((name) => `\${${name}`),
    )
  })

  it('checks the health of what serves, which an image in the OCI format does not do by itself', () => {
    const probe = ['CMD', 'node', 'dist/health/probe.js']
    expect(services.web?.healthcheck?.test).toEqual(probe)
    expect(services.worker?.healthcheck?.test).toEqual(probe)
    expect(readOwn('Containerfile')).toContain(JSON.stringify(probe.slice(1)).replaceAll(',', ', '))
  })

  it('has a proxy that closes idle connections before the service does, and waits for its restart', () => {
    const [, seconds] = /^\t+keepalive (\d+)s$/m.exec(readOwn('deploy/compose/Caddyfile')) ?? []
    expect(Number(seconds) * 1_000).toBeGreaterThan(0)
    expect(Number(seconds) * 1_000).toBeLessThan(SERVER_LIMITS.keepAliveMs)
    expect(readOwn('deploy/compose/Caddyfile')).toMatch(/^\t+lb_try_duration 20s$/m)
  })
})

describe('deploy/compose/make-secrets.sh', () => {
  /** Runs a copy of the script for a user whose files nobody else may read. */
  function prepare() {
    const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const script = join(folder, 'make-secrets.sh')
    copyFileSync(`${ROOT}/deploy/compose/make-secrets.sh`, script)
    const make = (...args: string[]) =>
      execFileSync('bash', ['-c', 'umask 077 && bash "$@"', 'bash', script, ...args])
    const secrets = join(folder, 'secrets')
    const read = (name: string) => readFileSync(join(secrets, name), 'utf8')
    return { folder, secrets, make, read }
  }

  it('makes secrets that the service can read, also where a file was there', () => {
    const { folder, secrets, make, read } = prepare()
    writeFileSync(join(folder, 'issued'), 'issued by the gateway\n', { mode: 0o600 })
    make(join(folder, 'issued'))
    expect(read('gateway_secret')).toBe('issued by the gateway')
    const names = readdirSync(secrets)
    expect(names).toEqual(
      [...readOwn('compose.yaml').matchAll(/secrets\/(\w+) /g)].map(([, name]) => name),
    )
    for (const name of names) execFileSync('chmod', ['600', join(secrets, name)])
    const before = names.map(read)
    make()
    expect(names.map(read)).toEqual(before)
    expect(names.map((name) => (statSync(join(secrets, name)).mode & 0o777).toString(8))).toEqual(
      names.map(() => '644'),
    )
    expect(statSync(secrets).mode & 0o777).toBe(0o700)
  })

  it('makes up what the service accepts as secrets', () => {
    const { make, read } = prepare()
    make()
    expect(read('api_key')).toMatch(/^[0-9a-f]{64}$/)
    expect(Buffer.from(read('data_encryption_key'), 'base64')).toHaveLength(32)
    expect(read('database_url')).toContain(`:${read('database_password')}@`)
  })
})
