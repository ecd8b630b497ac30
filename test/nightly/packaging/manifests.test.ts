import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { SECRET_SETTINGS, SETTINGS } from '../../../src/config/settings.ts'
import { PACKAGE } from '../../../src/version.ts'
import { FIRST_FREE_PORT } from '../../../src/webhooks/send.ts'
import { KUBERNETES, readCompose, readKubernetes, readOwn, STOP_S } from './deployments.ts'
import { findSchemaFaults } from './kubernetes-schemas.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const { kustomization, manifests, pods } = readKubernetes()
const { services, ours } = readCompose()
const units = ['ipn-processor', 'ipn-processor-migrate'].map((name) =>
  readOwn(`deploy/systemd/${name}.service`),
)

/** Names that are neither a setting nor the file of a secret. */
function findStrangers(names: readonly string[]): string[] {
  const known = new Set([
    ...Object.keys(SETTINGS),
    ...SECRET_SETTINGS.map((name) => `${name}_FILE`),
    'NODE_ENV',
    'MIGRATE',
    'COMPOSE_PROFILES',
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

describe('a release on Kubernetes', () => {
  const read = (file: string) => readOwn(`${KUBERNETES}/${file}`)

  it('takes no pod away before its successor is ready, which it is only after the migrations', () => {
    const strategies = ['web.yaml', 'worker.yaml'].map(
      (file) => /rollingUpdate: (.+)$/m.exec(read(file))?.[1],
    )
    expect(strategies).toEqual(strategies.map(() => '{ maxUnavailable: 0, maxSurge: 1 }'))
    const component = 'app.kubernetes.io/component=migrate'
    expect(read('migrate-job.yaml')).toContain(`labels:\n    ${component.replace('=', ': ')}`)
    expect(readOwn('deploy/README.md')).toContain(`apply -k deploy/kubernetes -l ${component}`)
  })

  it('lets webhooks out to each port that the service accepts, and to public addresses alone', () => {
    const policy = read('network-policy.yaml')
    expect(policy).toContain('{ protocol: TCP, port: 443 }')
    expect(policy).toContain(`{ protocol: TCP, port: ${FIRST_FREE_PORT}, endPort: 65535 }`)
    expect(policy).toMatch(/cidr: ::\/0\n +except: \["fc00::\/7", "fe80::\/10"\]/)
  })

  it('believes no proxy until one is named: the network is one of documentation', () => {
    expect(read('kustomization.yaml')).toContain('- TRUSTED_PROXIES=192.0.2.0/24')
  })

  it('runs the image of the release', () => {
    expect(kustomization.images[0]?.newTag).toBe(PACKAGE.version)
  })
})

describe('the systemd units', () => {
  it('wait longer than the service takes to stop', () => {
    const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(units[0] ?? '') ?? []
    expect(Number(seconds)).toBeGreaterThanOrEqual(STOP_S)
  })

  it('start again after every end, and whatever became of the migrations', () => {
    expect(units[0]).toMatch(/^Restart=always$/m)
    expect(units[0]).toMatch(/^StartLimitIntervalSec=0$/m)
    // A failed migration would leave the service dead, and a restart migrate while nothing serves.
    expect(units[0]).not.toMatch(/^(Requires|Requisite|BindsTo|Wants)=.*ipn-processor-migrate/m)
  })

  it('name documentation that exists', () => {
    for (const unit of units) {
      expect(unit).toMatch(/^# [^[]*deploy\/README\.md/)
      expect(unit).not.toContain('Documentation=')
    }
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
  const image = [...readOwn('Containerfile').matchAll(/^ENV (.*)$/gm)].flatMap(([, line = '']) =>
    line.split(' '),
  )
  const names = {
    image: image.map(nameOf),
    compose: ours.flatMap(([, { environment }]) => Object.keys(environment ?? {})),
    sandbox: [...readOwn('deploy/compose/sandbox.env').matchAll(/^([A-Z_]+)=/gm)].map(
      ([, name = '']) => name,
    ),
    kubernetes: [
      ...kustomization.configMapGenerator.flatMap(({ literals }) => literals.map(nameOf)),
      ...pods.flatMap(({ containers }) =>
        containers.flatMap(({ env }) => env.map(({ name }) => name)),
      ),
    ],
    systemd: [...units, readOwn('deploy/systemd/settings.env')].flatMap((text) =>
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
      ...['Containerfile', 'compose.yaml', `${KUBERNETES}/kustomization.yaml`].map(readOwn),
      ...units.slice(0, 1),
    ].map((text) => /DRAIN_MS[=:] ?(\d+)/.exec(text)?.[1])
    expect(drains).toEqual(['5000', '5000', '5000', '5000'])
  })

  it('migrates apart from the start', () => {
    expect(readOwn('compose.yaml')).toContain('MIGRATE: "off"')
    expect(readOwn(`${KUBERNETES}/kustomization.yaml`)).toContain('- MIGRATE=off')
    expect(units[0]).toContain('MIGRATE=off')
    const migrate = ['node', 'dist/cli/main.js', 'migrate']
    expect(services.migrate?.entrypoint).toEqual(migrate)
    expect(pods[0]?.containers[0]?.command).toEqual(migrate)
    expect(units[1]).toContain(`ExecStart=/usr/bin/${migrate.join(' ')}`)
  })
})
