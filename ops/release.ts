import { parseArgs } from 'node:util'
import { CLIENT_PACKAGE } from './build-client.ts'
import { packRelease } from './pack-previous-release.ts'
import { makeRelease, planRelease, ReleaseRefused } from './release/make-release.ts'

/**
 * Makes a release of the repository in the working directory: `npm run release -- minor [--dry-run]`. It pushes and
 * publishes nothing, and prints what does. Exit code 1: refused or failed, and nothing has changed; 2: wrong use.
 */

const USAGE = 'Usage: npm run release -- patch|minor|major|X.Y.Z [--dry-run]'

/** Returns what was asked for; undefined if that cannot be understood. */
function readArguments(): { wish: string; dryRun: boolean } | undefined {
  try {
    const options = { 'dry-run': { type: 'boolean', default: false } } as const
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    const [wish, ...more] = positionals
    if (wish === undefined || more.length > 0) return undefined
    return { wish, dryRun: values['dry-run'] }
  } catch {
    return undefined
  }
}

async function release(wish: string, dryRun: boolean): Promise<void> {
  const root = process.cwd()
  const plan = await planRelease(root, wish)
  if (dryRun) {
    console.log(`${plan.tag} can be released. It contains:\n\n${plan.notes}`)
    return
  }
  const date = new Date().toISOString().slice(0, 10)
  const before = await makeRelease(plan, { root, date, packPrevious: packRelease })
  console.log(`Made two commits on main and the tag ${plan.tag}. Nothing has been pushed. Next:

  git push --follow-tags origin main

The workflow "release" then publishes ${CLIENT_PACKAGE} ${plan.version}, as the CI alone can:

  npm run build && npm publish ./dist/client --provenance

To take the release back before it is pushed:

  git tag --delete ${plan.tag} && git reset --hard ${before}`)
}

const wanted = readArguments()
if (wanted) {
  await release(wanted.wish, wanted.dryRun).catch((error: unknown) => {
    console.error(error instanceof ReleaseRefused ? error.message : error)
    process.exitCode = 1
  })
} else {
  console.error(USAGE)
  process.exitCode = 2
}
