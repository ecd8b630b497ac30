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

const readWorkflow = (name: string) => workflows.find((one) => one.name === name)?.text ?? ''

it('every supported version of Node is tested: the oldest with each change, the others every night', () => {
  expect(readWorkflow('ci.yml')).toMatch(/node-version: 20\n.*\n {6}- run: bash \.ci\/run\n/)
  expect(readWorkflow('nightly.yml')).toMatch(/node: \[22, 24\]\n[\s\S]*- run: npm test\n/)
})

it('the long tests are played every night as root, which the image needs, and none is left out', () => {
  const nightly = readWorkflow('nightly.yml')
  expect(nightly).toMatch(/- run: sudo env "PATH=\$PATH" npm run test:nightly\n/)
  expect(nightly).not.toMatch(/exclude|continue-on-error/)
})

const MONEY = [
  'model',
  'crash',
  'killed-workers',
  'cut-transactions',
  'chaos',
]

it('the drills of money, a tenth of the ledger, and the races on another server stand between a change and main', () => {
  const script = readFileSync(SCRIPT, 'utf8')
  expect(script).toMatch(/^npm test$/m)
  expect(script).toContain(`npm run test:nightly -- ${MONEY.join(' ')}\n`)
  expect(script).toMatch(/^GUARDS=tenth npm run test:nightly -- guards$/m)
  expect(script).toMatch(/on-debian\.sh test\/races test\/api\/db\/constraints\.test\.ts$/m)
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
