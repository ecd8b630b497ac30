import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readUnreleased, releaseUnreleased } from '../../ops/release/changelog.ts'
import { makeRelease, planRelease } from '../../ops/release/make-release.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FIXTURE = 'test/fixtures/previous-release'
const KUBERNETES = 'deploy/kubernetes'
const run = promisify(execFile)

const CHANGELOG = `# Changelog

## Unreleased

### Added

- Refunds by pigeon.

## 1.4.9

- The first version.
`

/** Makes a repository of a project at version 1.4.9, on main, with one commit. */
async function makeProject(changelog = CHANGELOG) {
  const root = await mkdtemp(join(tmpdir(), 'release-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.trim()
  const write = (file: string, text: string) => writeFile(join(root, file), text)
  const read = (file: string) => readFile(join(root, file), 'utf8')
  await git('init', '--quiet', '--initial-branch', 'main')
  for (const [name, value] of [
    ['user.name', 'Release Test'],
    ['user.email', 'release@example.com'],
    ['commit.gpgSign', 'false'],
    ['tag.gpgSign', 'false'],
  ] as const) {
    await git('config', name, value)
  }
  const manifest = { name: 'project', version: '1.4.9' }
  await write('package.json', JSON.stringify(manifest, null, 2))
  const lock = { ...manifest, lockfileVersion: 3, requires: true, packages: { '': manifest } }
  await write('package-lock.json', JSON.stringify(lock, null, 2))
  await write('CHANGELOG.md', changelog)
  await mkdir(join(root, FIXTURE), { recursive: true })
  await write(`${FIXTURE}/release.json`, '1.4.8')
  await mkdir(join(root, KUBERNETES), { recursive: true })
  await write(`${KUBERNETES}/kustomization.yaml`, 'images:\n  - name: project\n    newTag: 1.4.9\n')
  await git('add', '--all')
  await git('commit', '--quiet', '--message', 'Begin')
  return { root, git, write, read }
}

const plan = (root: string, wish = 'minor') => planRelease(root, wish)

describe('a release is refused', () => {
  it('while something is not committed, tracked or not', async () => {
    const { root, git, write } = await makeProject()
    await write('new.txt', 'not added')
    await expect(plan(root)).rejects.toThrow(/^The working tree has changes: commit or stash/)
    await git('add', 'new.txt')
    await expect(plan(root)).rejects.toThrow(/^The working tree has changes/)
  })

  it('on another branch, and on none', async () => {
    const { root, git } = await makeProject()
    await git('switch', '--quiet', '--create', 'topic')
    await expect(plan(root)).rejects.toThrow(/^Releases are made on main, not on topic$/)
    await git('switch', '--quiet', '--detach')
    await expect(plan(root)).rejects.toThrow(/^Releases are made on main, not on a detached HEAD$/)
  })

  it('if its tag exists', async () => {
    const { root, git } = await makeProject()
    await git('tag', 'v1.5.0')
    await expect(plan(root)).rejects.toThrow(/^The tag v1\.5\.0 already exists$/)
    await expect(plan(root, 'major')).resolves.toMatchObject({ tag: 'v2.0.0' })
  })

  it.each([
    ['an empty section', CHANGELOG.replace('- Refunds by pigeon.\n', '')],
    ['no such section', CHANGELOG.replace('## Unreleased', '## 1.4.10')],
  ])('if the changelog has %s for it', async (_, changelog) => {
    const { root } = await makeProject(changelog)
    await expect(plan(root)).rejects.toThrow(/^CHANGELOG\.md lists nothing under Unreleased/)
  })

  it.each(['1.4.9', '1.4.8'])('if %s is no newer version', async (wish) => {
    const { root } = await makeProject()
    await expect(plan(root, wish)).rejects.toThrow(
      `${wish} is not newer than 1.4.9, the version in package.json`,
    )
  })

  it.each(['huge', '1.5', '1.5.0-rc.1'])('for %s, which is no version', async (wish) => {
    const { root } = await makeProject()
    await expect(plan(root, wish)).rejects.toThrow(/is none of patch, minor, major, nor a version/)
  })

  it('with all reasons at once', async () => {
    const { root, git, write } = await makeProject()
    await git('tag', 'v1.4.9')
    await git('switch', '--quiet', '--create', 'topic')
    await write('CHANGELOG.md', '# Changelog\n')
    const error: unknown = await plan(root, '1.4.9').catch((error: unknown) => error)
    expect(String(error).split('\n')).toHaveLength(5)
  })
})

describe('a release', () => {
  it.each([
    ['patch', '1.4.10'],
    ['minor', '1.5.0'],
    ['major', '2.0.0'],
    ['v1.6.0', '1.6.0'],
  ])('%s is %s', async (wish, version) => {
    const { root } = await makeProject()
    const notes = '### Added\n\n- Refunds by pigeon.'
    expect(await plan(root, wish)).toEqual({ version, tag: `v${version}`, notes })
  })

  it('is a commit with version and changelog, its tag, and a commit with the fixture of upgrades from it', async () => {
    const { root, git, read } = await makeProject()
    const before = await git('rev-parse', 'HEAD')
    const release = await plan(root)
    const made = await makeRelease(release, {
      root,
      date: '2026-11-30',
      packPrevious: async (commit, folder) => {
        await writeFile(join(folder, 'release.json'), commit)
        await writeFile(join(folder, 'main.js'), 'new in this release')
      },
    })
    expect(made).toBe(before)
    expect(await git('status', '--porcelain')).toBe('')
    expect(await git('log', '--format=%s')).toBe(
      'Test upgrades from 1.5.0, which is now the previous release\nRelease 1.5.0\nBegin',
    )
    const commit = await git('rev-parse', 'HEAD~1')
    expect(await git('rev-parse', 'v1.5.0^{commit}')).toBe(commit)
    expect(await git('cat-file', '-t', 'v1.5.0')).toBe('tag')
    expect(await git('tag', '--list', '--format=%(contents)', 'v1.5.0')).toBe(
      'v1.5.0\n\n### Added\n\n- Refunds by pigeon.',
    )
    const changed = await git('show', '--format=', '--name-only', commit)
    const kustomization = `${KUBERNETES}/kustomization.yaml`
    const versioned = ['package-lock.json', 'package.json']
    expect(changed.split('\n')).toEqual(['CHANGELOG.md', kustomization, ...versioned])
    expect(await read(kustomization)).toBe('images:\n  - name: project\n    newTag: 1.5.0\n')
    expect(await read('CHANGELOG.md')).toContain(
      '## Unreleased\n\n## 1.5.0 - 2026-11-30\n\n### Added',
    )
    expect(JSON.parse(await read('package.json'))).toMatchObject({ version: '1.5.0' })
    expect(JSON.parse(await read('package-lock.json'))).toMatchObject({
      version: '1.5.0',
      packages: { '': { version: '1.5.0' } },
    })
    expect(await read(`${FIXTURE}/release.json`)).toBe(commit)
    await expect(plan(root)).rejects.toThrow(/^CHANGELOG\.md lists nothing under Unreleased/)
  })

  it('that fails leaves the repository as it was', async () => {
    const { root, git, read } = await makeProject()
    const before = await git('rev-parse', 'HEAD')
    const failing = makeRelease(await plan(root), {
      root,
      date: '2026-11-30',
      packPrevious: async (_, folder) => {
        await writeFile(join(folder, 'main.js'), 'half of it')
        throw new Error('does not compile')
      },
    })
    await expect(failing).rejects.toThrow('does not compile')
    expect(await git('rev-parse', 'HEAD')).toBe(before)
    expect(await git('status', '--porcelain')).toBe('')
    expect(await git('tag', '--list')).toBe('')
    expect(await readdir(join(root, FIXTURE))).toEqual(['release.json'])
    expect(await read('CHANGELOG.md')).toBe(CHANGELOG)
  })
})

describe('the changelog', () => {
  it('that links its headings to comparisons goes on doing so', () => {
    const linked = `# Changelog

## [Unreleased]

- Refunds by pigeon.

## [1.4.9] - 2026-01-02

- The first version.

[Unreleased]: https://example.com/compare/v1.4.9...HEAD
[1.4.9]: https://example.com/tag/v1.4.9
`
    expect(releaseUnreleased(linked, '1.5.0', '2026-11-30')).toBe(`# Changelog

## [Unreleased]

## [1.5.0] - 2026-11-30

- Refunds by pigeon.

## [1.4.9] - 2026-01-02

- The first version.

[Unreleased]: https://example.com/compare/v1.5.0...HEAD
[1.5.0]: https://example.com/compare/v1.4.9...v1.5.0
[1.4.9]: https://example.com/tag/v1.4.9
`)
  })

  it('that has no release yet gets its first', () => {
    const first = '# Changelog\n\n## Unreleased\n\n- Refunds by pigeon.\n'
    expect(releaseUnreleased(first, '1.0.0', '2026-11-30')).toBe(
      '# Changelog\n\n## Unreleased\n\n## 1.0.0 - 2026-11-30\n\n- Refunds by pigeon.\n',
    )
  })

  it('of this project can be released', async () => {
    const text = await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8')
    const unreleased = readUnreleased(text)
    // Right after a release nothing is unreleased.
    if (unreleased === undefined) expect(text).toMatch(/^## Unreleased\n\n## \d/m)
    else
      expect(releaseUnreleased(text, '9.9.9', '2026-11-30')).toContain(
        `2026-11-30\n\n${unreleased}\n\n## `,
      )
  })
})

describe('npm run release', () => {
  const execute = async (root: string, ...args: string[]) => {
    const loader = fileURLToPath(import.meta.resolve('tsx'))
    const script = join(ROOT, 'ops/release.ts')
    const child = run(process.execPath, ['--import', loader, script, ...args], { cwd: root })
    return await child.then(
      ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    )
  }

  it('changes nothing in a dry run, exits with 1 if it refuses, and with 2 if it is used wrongly', async () => {
    const { root, git, write } = await makeProject()
    const before = await git('rev-parse', 'HEAD')
    expect(await execute(root, 'minor', '--dry-run')).toEqual({
      code: 0,
      stdout: 'v1.5.0 can be released. It contains:\n\n### Added\n\n- Refunds by pigeon.\n',
      stderr: '',
    })
    expect(await git('rev-parse', 'HEAD')).toBe(before)
    expect(await git('status', '--porcelain')).toBe('')
    expect(await git('tag', '--list')).toBe('')
    await write('new.txt', 'not added')
    const refused = { code: 1, stdout: '', stderr: expect.stringMatching(/^The working tree has/) }
    expect(await execute(root, 'minor')).toEqual(refused)
    const misused = {
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Usage: npm run release/),
    }
    expect(await execute(root)).toEqual(misused)
    expect(await execute(root, 'minor', '--force')).toEqual(misused)
  })
})
