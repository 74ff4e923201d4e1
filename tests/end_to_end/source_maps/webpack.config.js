const Terser = require('terser-webpack-plugin');
module.exports = { mode: 'production', target: 'node', devtool: 'source-map', entry: './src/main.ts', output: { path: __dirname + '/out-webpack', filename: 'app.min.js' },
 resolve: { extensions: ['.ts', '.js'] }, module: { rules: [{ test: /\.ts$/, use: { loader: 'ts-loader', options: { transpileOnly: true, compilerOptions: { target: 'es2022', module: 'esnext', sourceMap: true } } } }] }, optimization: { minimizer: [new Terser()] } };
