import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { nameFileOf } from '../../src/config/read-secret-files.ts'
import { SECRET_SETTINGS, SETTINGS } from '../../src/config/settings.ts'
import { findSchemaFaults } from '../support/kubernetes-schemas.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFileSync(`${ROOT}/${file}`, 'utf8')
const KUBERNETES = 'deploy/kubernetes'

/** What the service has after SIGTERM (s): DRAIN_MS, and the 10 s of its stop. */
const STOP_S = 15

const Container = z.object({
  name: z.string(),
  image: z.literal('ipn-processor'),
  command: z.array(z.string()).optional(),
  env: z.array(z.object({ name: z.string() })).default([]),
  securityContext: z.object({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  startupProbe: z.object({ httpGet: z.object({ path: z.literal('/healthz') }) }).optional(),
  livenessProbe: z.object({ httpGet: z.object({ path: z.literal('/healthz') }) }).optional(),
  readinessProbe: z.object({ httpGet: z.object({ path: z.literal('/readyz') }) }).optional(),
})
const Pod = z.object({
  enableServiceLinks: z.literal(false),
  automountServiceAccountToken: z.literal(false),
  terminationGracePeriodSeconds: z.number().min(STOP_S),
  securityContext: z.object({
    runAsNonRoot: z.literal(true),
    runAsUser: z.literal(10_001),
    seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
  }),
  containers: z.array(Container).length(1),
})
const Manifest = z.looseObject({ kind: z.string(), metadata: z.object({ name: z.string() }) })
const Workload = z.object({ spec: z.object({ template: z.object({ spec: Pod }) }) })
const Kustomization = z.object({
  resources: z.array(z.string()),
  images: z.array(z.object({ name: z.literal('ipn-processor') })).length(1),
  configMapGenerator: z.array(z.object({ name: z.string(), literals: z.array(z.string()) })),
})
const Service = z.looseObject({
  image: z.string(),
  user: z.string().optional(),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal('ALL')]),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]),
  environment: z.record(z.string(), z.unknown()).optional(),
  stop_grace_period: z.string().optional(),
  entrypoint: z.array(z.string()).optional(),
})
const Compose = z.object({ services: z.record(z.string(), Service) })

const kustomization = Kustomization.parse(parse(read(`${KUBERNETES}/kustomization.yaml`)))
const manifests = kustomization.resources.flatMap((file) =>
  parseAllDocuments(read(`${KUBERNETES}/${file}`)).map((document) =>
    Manifest.parse(document.toJS()),
  ),
)
const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
const pods = workloads.map((one) => Workload.parse(one).spec.template.spec)
const compose = Compose.parse(parse(read('compose.yaml'), { merge: true }))
const ours = Object.entries(compose.services).filter(([, { image }]) =>
  image.startsWith('ipn-processor:'),
)
const units = ['ipn-processor', 'ipn-processor-migrate'].map((name) =>
  read(`deploy/systemd/${name}.service`),
)

/** Names that are neither a setting nor the file of a secret. */
function findStrangers(names: readonly string[]): string[] {
  const known = new Set([
    ...Object.keys(SETTINGS),
    ...SECRET_SETTINGS.map(nameFileOf),
    'NODE_ENV',
    'MIGRATE',
  ])
  return names.filter((name) => !known.has(name))
}
const nameOf = (assignment: string) => assignment.slice(0, assignment.indexOf('='))

describe('the Kubernetes manifests', () => {
  it('follow the schemas of their kinds, without a field that these do not have', () => {
    expect(manifests.map(({ kind }) => kind).toSorted()).toEqual([
      ...['Deployment', 'Deployment', 'Job', 'Namespace', 'NetworkPolicy', 'NetworkPolicy'],
      ...['PodDisruptionBudget', 'PodDisruptionBudget', 'Service'],
    ])
    expect(manifests.flatMap(findSchemaFaults)).toEqual([])
  })

  it.each([
    ['an unknown field', { spec: { minAvailable: 1, atLeast: 1 } }, '/spec/atLeast'],
    ['a wrong type', { spec: { minAvailable: [1] } }, '/spec/minAvailable'],
    ['a misspelt kind', { kind: 'PodDisruptionsBudget' }, 'policy/v1 PodDisruptionsBudget'],
    ['a deep one', { metadata: { name: 'x', ownerReferences: [{ nam: 'x' }] } }, 'nam'],
  ])('reveal %s', (_, change, named) => {
    const [budget] = manifests.filter(({ kind }) => kind === 'PodDisruptionBudget')
    expect(findSchemaFaults({ ...budget, ...change }).join('\n')).toContain(named)
  })

  it('are all in the kustomization, each of whose files exists', () => {
    const files = readdirSync(`${ROOT}/${KUBERNETES}`).filter((name) => name.endsWith('.yaml'))
    expect(['kustomization.yaml', ...kustomization.resources].toSorted()).toEqual(files.toSorted())
  })

  it('run without privileges, and wait longer than the service takes to stop', () => {
    // The shape of `Pod` has the rules.
    expect(pods).toHaveLength(3)
    const served = pods.flatMap(({ containers }) => containers).filter(({ command }) => !command)
    expect(served.map(({ name }) => name)).toEqual(['web', 'worker'])
    for (const one of served) {
      expect([one.name, !one.startupProbe, !one.livenessProbe, !one.readinessProbe]).toEqual([
        ...[one.name, false, false, false],
      ])
    }
  })
})

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
    const text = read('compose.yaml')
    const [, trusted] = /TRUSTED_PROXIES: (.+)/.exec(text) ?? []
    const [, address] = /ipv4_address: ([\d.]+)/.exec(text) ?? []
    expect(trusted).toBe(address)
    expect(read('deploy/compose/Caddyfile')).toContain('@private path /metrics')
  })
})

describe('the systemd units', () => {
  it('wait longer than the service takes to stop', () => {
    const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(units[0] ?? '') ?? []
    expect(Number(seconds)).toBeGreaterThanOrEqual(STOP_S)
  })

  it('get as a credential every secret that they read from a file', () => {
    for (const unit of units) {
      const loaded = [...unit.matchAll(/^LoadCredential=(\w+):/gm)].map(([, name]) => name)
      const used = [...unit.matchAll(/^Environment=\w+_FILE=%d\/(\w+)$/gm)].map(([, name]) => name)
      expect(loaded.length).toBeGreaterThan(0)
      expect(used).toEqual(loaded)
    }
  })
})

describe('every deployment', () => {
  const image = [...read('Containerfile').matchAll(/^ENV (.*)$/gm)].flatMap(([, line = '']) =>
    line.split(' '),
  )
  const names = {
    image: image.map(nameOf),
    compose: ours.flatMap(([, { environment }]) => Object.keys(environment ?? {})),
    sandbox: [...read('deploy/compose/sandbox.env').matchAll(/^([A-Z_]+)=/gm)].map(
      ([, name = '']) => name,
    ),
    kubernetes: [
      ...kustomization.configMapGenerator.flatMap(({ literals }) => literals.map(nameOf)),
      ...pods.flatMap(({ containers }) =>
        containers.flatMap(({ env }) => env.map(({ name }) => name)),
      ),
    ],
    systemd: [...units, read('deploy/systemd/settings.env')].flatMap((text) =>
      [...text.matchAll(/^(?:Environment=)?([A-Z_]+=.*)$/gm)].flatMap(([, line = '']) =>
        line.split(' ').map(nameOf),
      ),
    ),
  }

  it.each(Object.entries(names))('%s sets only settings that exist', (_, given) => {
    expect(given.length).toBeGreaterThan(3)
    expect(findStrangers(given)).toEqual([])
    expect(findStrangers([...given, 'DRAIN_MSS', 'PORT_FILE'])).toEqual(['DRAIN_MSS', 'PORT_FILE'])
  })

  it('drains for as long as the grace periods count with', () => {
    const drains = [
      ...['Containerfile', 'compose.yaml', `${KUBERNETES}/kustomization.yaml`].map(read),
      ...units.slice(0, 1),
    ].map((text) => /DRAIN_MS[=:] ?(\d+)/.exec(text)?.[1])
    expect(drains).toEqual(['5000', '5000', '5000', '5000'])
  })

  it('migrates apart from the start', () => {
    expect(read('compose.yaml')).toContain('MIGRATE: "off"')
    expect(read(`${KUBERNETES}/kustomization.yaml`)).toContain('- MIGRATE=off')
    expect(units[0]).toContain('MIGRATE=off')
    const migrate = ['node', 'dist/cli/main.js', 'migrate']
    expect(compose.services.migrate?.entrypoint).toEqual(migrate)
    expect(pods[0]?.containers[0]?.command).toEqual(migrate)
    expect(units[1]).toContain(`ExecStart=/usr/bin/${migrate.join(' ')}`)
  })
})
