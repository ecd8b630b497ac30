import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../.ci/run', import.meta.url))

it('the whole script of the CI can be parsed: bash reads its last lines only when it gets there', async () => {
  await expect(promisify(execFile)('bash', ['-n', SCRIPT])).resolves.toMatchObject({ stderr: '' })
})

const WORKFLOWS = fileURLToPath(new URL('../../.github/workflows/', import.meta.url))
const workflows = readdirSync(WORKFLOWS).map((name) => ({
  name,
  text: readFileSync(WORKFLOWS + name, 'utf8'),
}))

it('the CI runs on every version of Node that is supported', () => {
  const ci = workflows.find(({ name }) => name === 'ci.yml')
  expect(ci?.text).toContain('node: [20, 22, 24]')
})

it('the CI plays the drill of the image as root, and does not leave it out where that is impossible', () => {
  const [, job = ''] =
    workflows.find(({ name }) => name === 'ci.yml')?.text.split('\n  image:\n') ?? []
  expect(job).toMatch(/- run: sudo ops\/install-image-tools\.sh\n/)
  expect(job).toMatch(/- run: sudo env "PATH=\$PATH" npm run test:drills -- image\n/)
  expect(job).not.toMatch(/exclude|continue-on-error/)
})

it('workflows use one version of each action, of GitHub itself, and may change nothing in the repository', () => {
  const used = workflows.flatMap(({ text }) =>
    [...text.matchAll(/\buses: (\S+)/g)].map(([, action = '']) => action),
  )
  expect([...new Set(used)].sort()).toEqual(['actions/checkout@v5', 'actions/setup-node@v5'])
  const granted = workflows.flatMap(({ name, text }) =>
    [...text.matchAll(/^ +([\w-]+): write$/gm)].map(([, permission]) => `${name}: ${permission}`),
  )
  // Signs the statement of provenance.
  expect(granted).toEqual(['release.yml: id-token'])
})
