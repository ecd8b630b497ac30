import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import semver from 'semver'
import { z } from 'zod'
import { readUnreleased, releaseUnreleased } from './changelog.ts'

const run = promisify(execFile)

/** Where the drill of an upgrade finds the release that is deployed. */
const PREVIOUS_RELEASE = 'test/fixtures/previous-release'
/** Where the image that Kubernetes runs has its version. */
const KUSTOMIZATION = 'deploy/kubernetes/kustomization.yaml'
const BRANCH = 'main'
const INCREMENTS = ['patch', 'minor', 'major'] as const

const Manifest = z.object({ version: z.string() })

/** A release that nothing stands against. */
export type Release = { version: string; tag: string; notes: string }

/** Why there can be no release: a line for each reason. */
export class ReleaseRefused extends Error {}

/**
 * Checks whether a release can be made; changes nothing.
 * @param root the root folder of the repository
 * @param wish `patch`, `minor`, `major`, or a version
 * @throws ReleaseRefused with all reasons
 */
export async function planRelease(root: string, wish: string): Promise<Release> {
  const { version: current } = Manifest.parse(
    JSON.parse(await readFile(join(root, 'package.json'), 'utf8')),
  )
  const increment = INCREMENTS.find((one) => one === wish)
  const version = increment ? semver.inc(current, increment) : semver.valid(wish)
  if (version === null || semver.prerelease(version)) {
    throw new ReleaseRefused(`${wish} is none of ${INCREMENTS.join(', ')}, nor a version X.Y.Z`)
  }
  const tag = `v${version}`
  const notes = readUnreleased(await readFile(join(root, 'CHANGELOG.md'), 'utf8'))
  const reasons = []
  if ((await git(root, 'status', '--porcelain')) !== '') {
    reasons.push('The working tree has changes: commit or stash them first')
  }
  const branch = await git(root, 'branch', '--show-current')
  if (branch !== BRANCH) {
    reasons.push(`Releases are made on ${BRANCH}, not on ${branch || 'a detached HEAD'}`)
  }
  if (!semver.gt(version, current)) {
    reasons.push(`${version} is not newer than ${current}, the version in package.json`)
  }
  if ((await git(root, 'tag', '--list', tag)) !== '') reasons.push(`The tag ${tag} already exists`)
  if (notes === undefined) {
    reasons.push('CHANGELOG.md lists nothing under Unreleased: describe what users will notice')
  }
  if (notes === undefined || reasons.length > 0) throw new ReleaseRefused(reasons.join('\n'))
  return { version, tag, notes }
}

/** How a release is made: `packPrevious` replaces a folder by the compiled service of a commit. */
export type ReleaseOptions = {
  root: string
  /** `YYYY-MM-DD` */
  date: string
  packPrevious(commit: string, folder: string): Promise<unknown>
}

/**
 * Makes two commits, the release and the fixture of upgrades from it, and an annotated tag on the first: at the tag,
 * upgrades are still tested from the release before. After a failure the repository is as it was.
 * @returns the commit from before the release
 */
export async function makeRelease(
  { version, tag, notes }: Release,
  { root, date, packPrevious }: ReleaseOptions,
): Promise<string> {
  const before = await git(root, 'rev-parse', 'HEAD')
  try {
    const changelog = join(root, 'CHANGELOG.md')
    const text = await readFile(changelog, 'utf8')
    await writeFile(changelog, releaseUnreleased(text, version, date))
    await deployImage(join(root, KUSTOMIZATION), version)
    // Also in the lock file.
    await run('npm', ['version', version, '--no-git-tag-version', '--ignore-scripts'], {
      cwd: root,
    })
    await git(root, 'commit', '--quiet', '--all', '--message', `Release ${version}`)
    const commit = await git(root, 'rev-parse', 'HEAD')
    await packPrevious(commit, join(root, PREVIOUS_RELEASE))
    await git(root, 'add', '--all', PREVIOUS_RELEASE)
    const subject = `Test upgrades from ${version}, which is now the previous release`
    await git(root, 'commit', '--quiet', '--message', subject)
    const message = `${tag}\n\n${notes}`
    await git(root, 'tag', '--annotate', '--cleanup=verbatim', '--message', message, tag, commit)
  } catch (error) {
    await git(root, 'reset', '--quiet', '--hard', before)
    await git(root, 'clean', '--quiet', '-fd', '--', PREVIOUS_RELEASE)
    throw error
  }
  return before
}

async function deployImage(file: string, version: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  const tag = /(?<=^ +newTag: ).*$/m
  if (!tag.test(text)) throw new Error(`${file} has no newTag, which is the version of the image`)
  await writeFile(file, text.replace(tag, version))
}

async function git(root: string, ...args: string[]): Promise<string> {
  return (await run('git', args, { cwd: root })).stdout.trim()
}
