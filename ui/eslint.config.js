import jsxA11y from 'eslint-plugin-jsx-a11y';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'src/api/schema.d.ts', 'e2e/.out', 'playwright-report', 'test-results'] },
  ...tseslint.configs.recommended,
  jsxA11y.flatConfigs.recommended,
  {
    // What a server answers to a test is whatever the test expects of it.
    files: ['e2e/**/*.ts'],
    rules: { '@typescript-eslint/no-explicit-any': 'off', 'no-empty-pattern': 'off' },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: {
      // Safari forgets that a list without markers is a list unless its role says so.
      'jsx-a11y/no-redundant-roles': ['error', { ul: ['list'], ol: ['list'], nav: ['navigation'] }],
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      // Components are read as a whole: a longer file misses a part.
      'max-lines': ['error', 200],
    },
  },
);
