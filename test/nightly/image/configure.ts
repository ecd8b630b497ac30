import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * Lets docker-compose read compose.yaml with the settings of the sandbox, in a folder of its own.
 * @param profile the line of `.env` that chooses the profile; empty for none
 */
export function configure(profile: string): { status: number | null; stderr: string } {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-compose-'))
  try {
    const settings = readFileSync(join(ROOT, 'deploy/compose/sandbox.env'), 'utf8')
    writeFileSync(join(folder, '.env'), settings.replace('COMPOSE_PROFILES=sandbox', profile))
    copyFileSync(join(ROOT, 'compose.yaml'), join(folder, 'compose.yaml'))
    const options = { cwd: folder, encoding: 'utf8' } as const
    const { status, stderr } = spawnSync('docker-compose', ['config', '-q'], options)
    return { status, stderr }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
