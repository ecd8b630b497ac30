import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Reads a file of the repository. */
export const readOwn = (file: string) => readFileSync(`${ROOT}/${file}`, 'utf8')

/** The folder of the Kustomize base. */
export const KUBERNETES = 'deploy/kubernetes'

/** What the service has after SIGTERM (s): `DRAIN_MS`, and the 10 s of its stop. */
export const STOP_S = 15

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
  images: z.tuple([z.object({ name: z.literal('ipn-processor'), newTag: z.string() })]),
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
  env_file: z.string().optional(),
  healthcheck: z.looseObject({ test: z.array(z.string()).optional() }).optional(),
})
const Network = z.looseObject({ subnet: z.string(), ip_range: z.string() })
const Compose = z.object({
  services: z.record(z.string(), Service),
  networks: z.object({ edge: z.object({ ipam: z.object({ config: z.tuple([Network]) }) }) }),
})

/** The kustomization, and the documents of the files that it names. */
export function readKubernetes() {
  const kustomization = Kustomization.parse(parse(readOwn(`${KUBERNETES}/kustomization.yaml`)))
  const manifests = kustomization.resources.flatMap((file) =>
    parseAllDocuments(readOwn(`${KUBERNETES}/${file}`)).map((document) =>
      Manifest.parse(document.toJS()),
    ),
  )
  const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
  const pods = workloads.map((one) => Workload.parse(one).spec.template.spec)
  return { kustomization, manifests, pods }
}

/** The services of compose.yaml, those of them that run the image (`ours`), and the network of the proxy. */
export function readCompose() {
  const { services, networks } = Compose.parse(parse(readOwn('compose.yaml'), { merge: true }))
  const ours = Object.entries(services).filter(([, { image }]) =>
    image.startsWith('ipn-processor:'),
  )
  return { services, ours, edge: networks.edge.ipam.config[0] }
}
