import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundle, linkPackage } from './bundle.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The files of what tests run in processes of their own. */
    programs: Record<'service' | 'sandbox' | 'cli' | 'probe' | 'embeddedOwner', string>
  }
}

/** Builds the programs once per run: a start from the sources takes 2 s on a busy machine. */
export default function buildPrograms(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-programs-'))
  chmodSync(folder, 0o755)
  linkPackage(folder)
  project.provide('programs', {
    service: bundle('src/main.ts', folder, 'service'),
    sandbox: bundle('src/sandbox/main.ts', folder, 'sandbox'),
    cli: bundle('src/cli/main.ts', folder, 'cli'),
    probe: bundle('src/health/probe.ts', folder, 'probe'),
    embeddedOwner: bundle('test/fixtures/embedded-owner.ts', folder, 'embedded-owner'),
  })
  return () => rmSync(folder, { recursive: true, force: true })
}
