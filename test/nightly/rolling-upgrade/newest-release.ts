import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from '../../support/bundle.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const SOURCES = ['src', 'migrations', 'package.json', 'tsconfig.json']

/**
 * Returns the tag of the newest release before this commit; undefined as long as there is none. At a tag itself, upgrades
 * are played from the release before.
 */
export function findNewestRelease(): string | undefined {
  const sorted = ['--sort=-version:refname', '--list', 'v*']
  const tags = git('tag', '--merged', 'HEAD', ...sorted)
    .toString()
    .split('\n')
  const here = git('tag', '--points-at', 'HEAD').toString().split('\n')
  return tags.find((tag) => tag !== '' && !here.includes(tag))
}

/**
 * Builds the service of a tag into a folder, with the packages that are installed now.
 * @returns its program
 */
export function buildRelease(tag: string, folder: string): string {
  mkdirSync(folder)
  const maxBuffer = 256 * 1024 * 1024
  const sources = execFileSync('git', ['archive', tag, ...SOURCES], { cwd: ROOT, maxBuffer })
  execFileSync('tar', ['-x', '-C', folder], { input: sources })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return bundle('src/main.ts', folder, 'service', folder)
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: ROOT })
}
